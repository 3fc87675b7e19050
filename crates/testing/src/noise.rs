//! Bytes that look random.

/// Bytes that cannot be compressed (xorshift64), the same at each call.
pub fn noise(size_bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(&mut next).flatten().take(size_bytes).collect()
}
