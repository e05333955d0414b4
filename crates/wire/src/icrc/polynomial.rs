//! Arithmetic modulo the CRC-32 polynomial, on what every CRC is: a polynomial over GF(2).
//!
//! Polynomials are reflected, as the CRC's octets are: the highest bit of a `u32` is x^0, its lowest x^31.

/// The polynomial without its x^32, reflected (IEEE 802.3).
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// All 33 coefficients of the polynomial, reflected: bit 0 is x^32.
const WHOLE_POLYNOMIAL: u64 = 0x1_DB71_0641;

/// The 33 coefficients of the quotient x^64 / polynomial, reflected: bit 0 is x^32.
const QUOTIENT: u64 = 0x1_F701_1641;

/// x^0.
const ONE: u32 = 0x8000_0000;

/// Product of two polynomials.
#[inline]
pub(super) fn multiply(a: u32, b: u32) -> u32 {
    sum_of_products(Pair(a, b))
}

/// The CRC register after the octets by which `old` and `new` differ, when it was zero before them: their polynomial
/// times x^32.
#[inline]
pub(super) fn remainder_of_difference<const N: usize>(old: &[u8; N], new: &[u8; N]) -> u32 {
    sum_of_products(Difference(old, new))
}

/// x to the power of eight times the octets.
pub(super) fn power_of_octets(count: u16) -> u32 {
    let near = NEAR.get(usize::from(count & 0xFF)).copied().unwrap_or(ONE);
    match FAR.get(usize::from(count >> 8)).copied() {
        Some(far) if count > 0xFF => multiply(near, far),
        _ => near,
    }
}

/// `register` after `count` octets of the value `octet`.
pub(super) const fn register_after(mut register: u32, octet: u8, count: usize) -> u32 {
    let mut index = 0;
    while index < count {
        register = times_x8(register ^ octet as u32);
        index += 1;
    }
    register
}

/// The factors of a sum of products.
trait Factors: Copy {
    /// Number of products.
    const COUNT: usize;

    /// Both factors of one product.
    fn pair(self, index: usize) -> (u32, u32);
}

#[derive(Clone, Copy)]
struct Pair(u32, u32);

impl Factors for Pair {
    const COUNT: usize = 1;

    #[inline(always)]
    fn pair(self, _: usize) -> (u32, u32) {
        (self.0, self.1)
    }
}

/// Words of the difference between two runs of octets, from the last to the first, each with its power of x.
#[derive(Clone, Copy)]
struct Difference<'a, const N: usize>(&'a [u8; N], &'a [u8; N]);

impl<const N: usize> Factors for Difference<'_, N> {
    const COUNT: usize = {
        assert!(N <= 4 * POWERS_OF_X32.len(), "more octets than there are powers");
        N.div_ceil(4)
    };

    #[inline(always)]
    fn pair(self, index: usize) -> (u32, u32) {
        let power = POWERS_OF_X32.get(index).copied().unwrap_or(0);
        (word_from_end(self.0, index) ^ word_from_end(self.1, index), power)
    }
}

/// Octets that do not fill a word have zeros put before them, which leave a zero register as it is.
#[inline(always)]
fn word_from_end<const N: usize>(octets: &[u8; N], index: usize) -> u32 {
    let (odd, words) = octets.as_rchunks::<4>();
    match words.iter().nth_back(index) {
        Some(word) => u32::from_le_bytes(*word),
        None => {
            odd.iter().zip(4 - odd.len()..4).fold(0, |word, (octet, place)| word | u32::from(*octet) << (8 * place))
        }
    }
}

/// Sum of products, reduced once.
#[inline]
fn sum_of_products(factors: impl Factors) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if carry_less::get() {
        #[allow(unsafe_code)]
        // SAFETY: the function needs PCLMULQDQ and SSE4.1, and both were just detected.
        return unsafe { sum_of_products_by_instruction(factors) };
    }
    sum_of_products_portably(factors)
}

#[cfg(target_arch = "x86_64")]
cpufeatures::new!(carry_less, "pclmulqdq", "sse4.1");

/// The products lie 32 places higher than in the portable function, so that every factor of the reduction stands in
/// the low half of its register as it is, and the result in the third word.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "pclmulqdq,sse4.1")]
fn sum_of_products_by_instruction<F: Factors>(factors: F) -> u32 {
    use core::arch::x86_64::*;
    let register = |value: u64| _mm_cvtsi64_si128(value as i64);
    let mut sum = _mm_setzero_si128();
    for index in 0..F::COUNT {
        let (a, b) = factors.pair(index);
        let product = _mm_clmulepi64_si128::<0>(register(u64::from(a) << 1), register(u64::from(b) << 32));
        sum = _mm_xor_si128(sum, product);
    }
    let multiple = _mm_clmulepi64_si128::<0>(sum, register(QUOTIENT));
    let subtrahend = _mm_clmulepi64_si128::<0>(multiple, register(WHOLE_POLYNOMIAL));
    _mm_extract_epi32::<2>(_mm_xor_si128(sum, subtrahend)) as u32
}

/// Barrett's reduction: subtracts the multiple of the polynomial that clears the terms from x^32 up, the low bits.
#[cfg_attr(target_arch = "x86_64", cold)]
fn sum_of_products_portably<F: Factors>(factors: F) -> u32 {
    let pairs = (0..F::COUNT).map(|index| factors.pair(index));
    // The product of two reflected polynomials has x^0 in bit 62, a reflected u64 has it in bit 63.
    let sum = pairs.fold(0, |sum, (a, b)| sum ^ product(a, b)) << 1;
    let multiple = product(sum as u32, QUOTIENT as u32) as u32;
    let subtrahend = product(multiple, WHOLE_POLYNOMIAL as u32) ^ u64::from(multiple) << 32;
    ((sum ^ subtrahend) >> 32) as u32
}

/// Product without carries.
///
/// Each factor is split into four with a bit in every fourth place. At most eight bits add up in a place of their
/// products, so that no carry reaches the next place that counts.
fn product(a: u32, b: u32) -> u64 {
    const EVERY_FOURTH: u64 = 0x1111_1111_1111_1111;
    let part = |factor: u32, place: u32| u64::from(factor) & EVERY_FOURTH << place;
    let mut sum = 0;
    for place in 0..4 {
        let products = (0..4).map(|first| part(a, first).wrapping_mul(part(b, (place + 4 - first) % 4)));
        sum |= products.fold(0, |sum, product| sum ^ product) & EVERY_FOURTH << place;
    }
    sum
}

/// x^(32·(n+1)): the factor of the n-th word from the end of some octets.
static POWERS_OF_X32: [u32; 64] = powers(4, 1);

/// x^(8·n) for n below 256.
static NEAR: [u32; 256] = powers(1, 0);

/// x^(8·256·n) for n below 256.
static FAR: [u32; 256] = powers(256, 0);

/// x^(8·step·(first + n)).
#[allow(clippy::indexing_slicing)] // evaluated by the compiler
const fn powers<const N: usize>(step: usize, first: usize) -> [u32; N] {
    let mut table = [0; N];
    let mut value = register_after(ONE, 0, step * first);
    let mut index = 0;
    while index < N {
        table[index] = value;
        value = register_after(value, 0, step);
        index += 1;
    }
    table
}

/// One octet of zeros through the shift register.
const fn times_x8(mut value: u32) -> u32 {
    let mut bit = 0;
    while bit < 8 {
        value = if value & 1 != 0 { value >> 1 ^ POLYNOMIAL } else { value >> 1 };
        bit += 1;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, bit by bit: shift and add.
    fn multiply_slowly(a: u32, mut b: u32) -> u32 {
        let mut product = 0;
        let mut bit = ONE;
        while bit != 0 {
            if a & bit != 0 {
                product ^= b;
            }
            b = if b & 1 != 0 { b >> 1 ^ POLYNOMIAL } else { b >> 1 };
            bit >>= 1;
        }
        product
    }

    fn register_slowly(octets: &[u8]) -> u32 {
        octets.iter().fold(0, |register, octet| times_x8(register ^ u32::from(*octet)))
    }

    proptest! {
        #[test]
        fn both_products_equal_the_definition(a: u32, b: u32) {
            prop_assert_eq!(multiply(a, b), multiply_slowly(a, b));
            prop_assert_eq!(sum_of_products_portably(Pair(a, b)), multiply_slowly(a, b));
        }

        #[test]
        fn powers_count_octets(count: u16) {
            prop_assert_eq!(power_of_octets(count), register_after(ONE, 0, usize::from(count)));
        }

        #[test]
        fn remainder_is_the_register(octets in proptest::array::uniform::<_, 256>(any::<u8>())) {
            fn check<const N: usize>(octets: &[u8]) {
                let octets = octets.first_chunk::<N>().unwrap();
                assert_eq!(remainder_of_difference(&[0; N], octets), register_slowly(octets));
                assert_eq!(sum_of_products_portably(Difference(&[0; N], octets)), register_slowly(octets));
            }
            check::<0>(&octets);
            check::<1>(&octets);
            check::<3>(&octets);
            check::<12>(&octets);
            check::<14>(&octets);
            check::<31>(&octets);
            check::<256>(&octets);
        }
    }

    #[test]
    fn factors_follow_from_the_polynomial() {
        assert_eq!(WHOLE_POLYNOMIAL, u64::from(POLYNOMIAL) << 1 | 1);
        // Long division of x^64; bit 0 of a reflected quotient is its first term, x^32.
        let (mut quotient, mut rest) = (1u64, POLYNOMIAL);
        for place in 1..=32 {
            quotient |= u64::from(rest & 1) << place;
            rest = if rest & 1 != 0 { rest >> 1 ^ POLYNOMIAL } else { rest >> 1 };
        }
        assert_eq!(QUOTIENT, quotient);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_instruction_is_found() {
        let expected = std::is_x86_feature_detected!("pclmulqdq") && std::is_x86_feature_detected!("sse4.1");
        assert_eq!(carry_less::get(), expected);
    }
}
