//! What two submissions of the same application differ by: the time, and what is drawn by chance.

use jiff::Timestamp;
use rand::Rng;
use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

/// Drawn once for each submission.
#[derive(Clone)]
pub struct Drawn {
    /// When it is submitted.
    pub now: Timestamp,
    /// Of the application.
    pub app_id: Uuid,
    /// For the names of its objects, its service and its config map.
    pub ids: [[u8; 3]; 3],
    /// For the folder of local data.
    pub local_dir: Uuid,
    /// What the folders of copies come from.
    copies: [u8; 32],
}

impl Drawn {
    /// Draws everything.
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

    /// For the folder of one copy. How many there are shows only in the plan.
    #[must_use]
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
