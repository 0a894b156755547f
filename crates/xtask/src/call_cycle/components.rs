//! Strongly connected components: what can be reached from each other.

/// Parts of a graph whose nodes reach each other. `edges` has the nodes that each node leads to.
pub(super) fn components(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let reach: Vec<Vec<bool>> = (0..edges.len()).map(|from| reached(edges, from)).collect();
    let mut is_taken = vec![false; edges.len()];
    let mut parts = Vec::new();
    for node in 0..edges.len() {
        if is_taken[node] {
            continue;
        }
        let is_with = |other: &usize| *other == node || reach[node][*other] && reach[*other][node];
        let part: Vec<usize> = (0..edges.len()).filter(is_with).collect();
        for of in &part {
            is_taken[*of] = true;
        }
        parts.push(part);
    }
    parts
}

/// The nodes that are reached from one.
fn reached(edges: &[Vec<usize>], from: usize) -> Vec<bool> {
    let mut is_reached = vec![false; edges.len()];
    let mut left = edges[from].clone();
    while let Some(node) = left.pop() {
        if !std::mem::replace(&mut is_reached[node], true) {
            left.extend(&edges[node]);
        }
    }
    is_reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_each_other_is_together() {
        // 0 to 1 to 2 to 0; 2 to 3; 3 and 4 reach each other; 5 is alone, with itself.
        let edges = [vec![1], vec![2], vec![0, 3], vec![4], vec![3], vec![5]];
        assert_eq!(components(&edges), [vec![0, 1, 2], vec![3, 4], vec![5]]);
        assert!(components(&[]).is_empty());
    }
}
