//! Pseudo-random choices from a seed.

/// A pseudo-random generator.
#[derive(Clone)]
pub struct Dice(u64);

impl Dice {
    /// The generator for a seed.
    pub fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d);
        dice.below(2);
        dice
    }

    /// A number below the limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// True with this probability, in percent.
    pub fn percent(&mut self, often: u64) -> bool {
        self.below(100) < often
    }

    /// A random element.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let limit = u64::try_from(of.len()).unwrap();
        &of[usize::try_from(self.below(limit)).unwrap()]
    }
}
