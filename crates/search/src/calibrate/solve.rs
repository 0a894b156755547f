//! A step of damped least squares: small, dense, and the same bits everywhere.

/// The step `p` that minimises the sum of `w (e + J p)^2` with damping, where
/// `columns` are the columns of J. `None` if nothing determines it.
///
/// Damping adds `damping` times each diagonal element to it, as Marquardt did,
/// so that it does not depend on the scale of a column.
pub(crate) fn damped_step(
    columns: &[&[f64]],
    errors: &[f64],
    weights: &[f64],
    damping: f64,
) -> Option<Vec<f64>> {
    let n = columns.len();
    let dot = |a: &[f64], b: &[f64]| -> f64 {
        let products = a.iter().zip(b).zip(weights).map(|((a, b), w)| a * b * w);
        products.sum()
    };
    let mut matrix = vec![vec![0.0; n]; n];
    let mut right = vec![0.0; n];
    for row in 0..n {
        for column in 0..=row {
            matrix[row][column] = dot(columns[row], columns[column]);
            matrix[column][row] = matrix[row][column];
        }
        right[row] = -dot(columns[row], errors);
    }
    let trace: f64 = (0..n).map(|i| matrix[i][i]).sum();
    if trace <= 0.0 || !trace.is_finite() {
        return None;
    }
    for (i, row) in matrix.iter_mut().enumerate() {
        // The second part keeps a column of zeros solvable: it gives no step.
        row[i] += damping * row[i] + 1e-9 * trace;
    }
    cholesky(&mut matrix)?;
    Some(substitute(&matrix, right))
}

/// Replaces the lower half of a symmetric matrix by its Cholesky factor;
/// `None` if it is not positive definite.
pub(crate) fn cholesky(matrix: &mut [Vec<f64>]) -> Option<()> {
    for row in 0..matrix.len() {
        for column in 0..=row {
            let products = (0..column).map(|k| matrix[row][k] * matrix[column][k]);
            let rest = matrix[row][column] - products.sum::<f64>();
            if row > column {
                matrix[row][column] = rest / matrix[column][column];
            } else if rest > 0.0 {
                matrix[row][row] = rest.sqrt();
            } else {
                return None;
            }
        }
    }
    Some(())
}

/// Solves `L L' x = b`.
pub(crate) fn substitute(factor: &[Vec<f64>], mut x: Vec<f64>) -> Vec<f64> {
    let n = x.len();
    for row in 0..n {
        let known: f64 = (0..row).map(|k| factor[row][k] * x[k]).sum();
        x[row] = (x[row] - known) / factor[row][row];
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|k| factor[k][row] * x[k]).sum();
        x[row] = (x[row] - known) / factor[row][row];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_problem_is_solved_in_one_step() {
        // e = J (p - (1, -2)) with a third row that weighs nothing.
        let columns: [&[f64]; 2] = [&[1.0, 2.0, 9.0], &[3.0, -1.0, 9.0]];
        let errors = [-1.0 + 6.0, -2.0 - 2.0, 100.0];
        let step = damped_step(&columns, &errors, &[1.0, 0.5, 0.0], 0.0).unwrap();
        assert!((step[0] - 1.0).abs() < 1e-6, "{step:?}");
        assert!((step[1] + 2.0).abs() < 1e-6, "{step:?}");
        let damped = damped_step(&columns, &errors, &[1.0, 0.5, 0.0], 10.0).unwrap();
        assert!(damped[0].abs() < step[0].abs() && damped[1].abs() < step[1].abs());
    }

    #[test]
    fn what_nothing_determines_does_not_move() {
        let columns: [&[f64]; 2] = [&[1.0, 1.0], &[0.0, 0.0]];
        let step = damped_step(&columns, &[-1.0, -1.0], &[1.0, 1.0], 0.0).unwrap();
        assert!((step[0] - 1.0).abs() < 1e-6 && step[1] == 0.0, "{step:?}");
        // Two columns that say the same share the step.
        let twins: [&[f64]; 2] = [&[1.0, 1.0], &[1.0, 1.0]];
        let step = damped_step(&twins, &[-1.0, -1.0], &[1.0, 1.0], 0.0).unwrap();
        assert!((step[0] - 0.5).abs() < 1e-3 && (step[1] - 0.5).abs() < 1e-3);
        let nothing: [&[f64]; 1] = [&[0.0, 0.0]];
        assert_eq!(damped_step(&nothing, &[1.0, 1.0], &[1.0, 1.0], 0.0), None);
    }
}
