//! The drawn values of a submission: the time, and random values. Two submissions of one application differ only in
//! them.

use jiff::Timestamp;
use rand::Rng;
use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

/// The values of one submission. They are drawn once, so that the plan itself is pure.
#[derive(Clone)]
pub struct Randomness {
    /// The time of the submission.
    pub now: Timestamp,
    /// The random part of the application's id.
    pub app_id: Uuid,
    /// The random bytes in the names of the objects, the service and the config map, in this order.
    pub ids: [[u8; 3]; 3],
    /// The random part of the name of the folder for local data.
    pub local_dir: Uuid,
    /// The seed for the names of the folders of copies.
    copies: [u8; 32],
}

impl Randomness {
    /// Draws all values.
    pub fn new(now: Timestamp, random: &mut (impl Rng + ?Sized)) -> Self {
        let app_id = uuid(random);
        let ids = [(); 3].map(|()| {
            let mut bytes = [0; 3];
            random.fill_bytes(&mut bytes);
            bytes
        });
        let local_dir = uuid(random);
        let mut copies = [0; 32];
        random.fill_bytes(&mut copies);
        Self { now, app_id, ids, local_dir, copies }
    }

    /// The random part of the name of one copy's folder. It comes from a digest, because only the plan knows how many
    /// copies there are, and the plan draws nothing.
    pub fn copy(&self, number: usize) -> Uuid {
        let digest = Sha256::new().chain_update(self.copies).chain_update(number.to_be_bytes()).finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        Builder::from_random_bytes(bytes).into_uuid()
    }
}

/// A random UUID (version 4).
fn uuid(random: &mut (impl Rng + ?Sized)) -> Uuid {
    let mut bytes = [0; 16];
    random.fill_bytes(&mut bytes);
    Builder::from_random_bytes(bytes).into_uuid()
}
