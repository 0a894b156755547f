//! Sobol points: they fill a cube evenly however many are taken.
//!
//! Directions are those of Joe and Kuo ("Constructing Sobol sequences with better
//! two-dimensional projections", 2008; their table for search criterion D6), the order is
//! that of the Gray code (Antonov and Saleev 1979). Own code, because libraries either
//! scramble, so that nothing can be checked against published points, or are not kept.

/// Most dimensions.
pub(crate) const DIMENSIONS: usize = 16;

/// Bits of a coordinate, and of the number of points.
const BITS: usize = 32;

/// Of each dimension after the first: degree of its primitive polynomial, the inner
/// coefficients of it as bits, and initial directions.
const TABLE: [(u32, u32, &[u32]); DIMENSIONS - 1] = [
    (1, 0, &[1]),
    (2, 1, &[1, 3]),
    (3, 1, &[1, 3, 1]),
    (3, 2, &[1, 1, 1]),
    (4, 1, &[1, 1, 3, 3]),
    (4, 4, &[1, 3, 5, 13]),
    (5, 2, &[1, 1, 5, 5, 17]),
    (5, 4, &[1, 1, 5, 5, 5]),
    (5, 7, &[1, 1, 7, 11, 19]),
    (5, 11, &[1, 1, 5, 1, 1]),
    (5, 13, &[1, 1, 1, 3, 11]),
    (5, 14, &[1, 3, 5, 5, 31]),
    (6, 1, &[1, 3, 3, 9, 7, 49]),
    (6, 13, &[1, 1, 1, 15, 21, 21]),
    (6, 16, &[1, 3, 1, 13, 27, 49]),
];

/// The sequence.
pub(crate) struct Sobol {
    /// By dimension.
    directions: Vec<[u32; BITS]>,
    at: Vec<u32>,
    /// Points that were taken.
    taken: u32,
}

impl Sobol {
    /// The sequence in so many dimensions, at most [`DIMENSIONS`].
    pub(crate) fn new(dimensions: usize) -> Self {
        let dimensions = dimensions.min(DIMENSIONS);
        Self {
            directions: (0..dimensions).map(directions).collect(),
            at: vec![0; dimensions],
            taken: 0,
        }
    }

    /// The next point, in units of 2^-32; the first is the origin.
    pub(crate) fn next(&mut self) -> Vec<u32> {
        let point = self.at.clone();
        // The bit in which the Gray codes of this number and the next differ.
        let bit = self.taken.trailing_ones() as usize;
        if let Some(bit) = (bit < BITS).then_some(bit) {
            for (at, directions) in self.at.iter_mut().zip(&self.directions) {
                *at ^= directions[bit];
            }
        }
        self.taken = self.taken.wrapping_add(1);
        point
    }
}

fn directions(dimension: usize) -> [u32; BITS] {
    let mut v = [0; BITS];
    let Some((degree, inner, first)) = dimension.checked_sub(1).map(|row| TABLE[row]) else {
        for (bit, v) in v.iter_mut().enumerate() {
            *v = 1 << (BITS - 1 - bit);
        }
        return v;
    };
    let degree = degree as usize;
    for bit in 0..BITS {
        v[bit] = if bit < degree {
            first[bit] << (BITS - 1 - bit)
        } else {
            let before = v[bit - degree];
            let mut value = before ^ (before >> degree);
            for k in 1..degree {
                let has = inner >> (degree - 1 - k) & 1 == 1;
                if has {
                    value ^= v[bit - k];
                }
            }
            value
        };
    }
    v
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all(dimensions: usize, count: usize) -> Vec<Vec<u32>> {
        let mut sobol = Sobol::new(dimensions);
        (0..count).map(|_| sobol.next()).collect()
    }

    /// Points of the published directions, as SciPy 1.16 (`scipy.stats.qmc.Sobol`, not
    /// scrambled, 32 bits), which has the table of the authors, gives them.
    #[test]
    fn the_points_are_those_of_joe_and_kuo() {
        let points = all(DIMENSIONS, 1025);
        let eighths = |point: &[u32]| point.iter().map(|x| x >> 29).collect::<Vec<_>>();
        assert_eq!(points[0], [0; DIMENSIONS]);
        assert_eq!(points[1], [1 << 31; DIMENSIONS]);
        assert_eq!(
            eighths(&points[2]),
            [6, 2, 2, 2, 6, 6, 2, 6, 6, 6, 6, 6, 2, 2, 6, 2]
        );
        assert_eq!(
            eighths(&points[5]),
            [7, 7, 1, 3, 7, 5, 7, 3, 3, 1, 3, 7, 7, 1, 7, 3]
        );
        assert_eq!(
            eighths(&points[7]),
            [1, 5, 3, 1, 1, 3, 5, 5, 5, 7, 5, 1, 5, 3, 1, 1]
        );
        assert_eq!(
            points[1024],
            [
                6_291_456,
                1_616_904_192,
                1_923_088_384,
                2_090_860_544,
                2_392_850_432,
                3_625_975_808,
                1_038_090_240,
                2_522_873_856,
                2_992_635_904,
                2_883_584_000,
                3_529_506_816,
                3_957_325_824,
                3_034_578_944,
                1_453_326_336,
                568_328_192,
                3_680_501_760,
            ]
        );
    }

    /// The first 2^k points have one in each of 2^k equal parts of every dimension, and in
    /// the first two dimensions one in each rectangle of that area.
    #[test]
    fn every_part_of_the_cube_has_its_point() {
        let points = all(DIMENSIONS, 256);
        for dimension in 0..DIMENSIONS {
            let parts: BTreeSet<u32> = points.iter().map(|point| point[dimension] >> 24).collect();
            assert_eq!(parts.len(), 256, "dimension {dimension}");
        }
        for bits in 1..8 {
            let cell = |point: &Vec<u32>| (point[0] >> (32 - bits), point[1] >> (24 + bits));
            let cells: BTreeSet<_> = points.iter().map(cell).collect();
            assert_eq!(cells.len(), 256, "{bits} bits of the first");
        }
    }
}
