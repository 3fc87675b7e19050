//! Bundles that are put together: a kilobyte asks the server to read and write many megabytes.

use std::io::Result;
use std::sync::Arc;

use cloakroom_core::protocol::recipe::{RECIPE_LENGTH, Recipe, RecipePart};
use cloakroom_core::protocol::v1::spliced_path;

use crate::abuser::{Abuser, BUNDLE_BYTES};
use crate::tenants::ABUSER;

/// A large bundle four times in a row. Its digest is another one, so it is thrown away at the end.
pub async fn copied_in_vain(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let recipe = recipe(&abuser, 4);
    let mut connection = abuser.connect(hand).await?;
    connection.send(head(&abuser, recipe.len())).await?;
    let answer = connection.ask(recipe).await?;
    abuser.saw(answer.outcome());
    Ok(())
}

/// Half of a recipe, which the server waits for.
pub async fn half_recipes(abuser: Arc<Abuser>, hand: u64) -> Result<()> {
    let recipe = recipe(&abuser, 1);
    let mut connection = abuser.connect(hand).await?;
    connection.send(head(&abuser, recipe.len())).await?;
    let answer = connection.ask(&recipe[..recipe.len() / 2]).await?;
    abuser.refused(answer.outcome()).await;
    Ok(())
}

fn recipe(abuser: &Abuser, times: usize) -> String {
    let (_, secret) = abuser.bundle();
    let recipe = Recipe {
        source_secret: secret.clone(),
        parts: vec![RecipePart::Copy([0, BUNDLE_BYTES as u64]); times],
        size_bytes: (times * BUNDLE_BYTES) as u64,
        sha256: "0".repeat(64),
    };
    serde_json::to_string(&recipe).unwrap()
}

/// Nothing is behind the recipe.
fn head(abuser: &Abuser, recipe_bytes: usize) -> String {
    format!(
        "POST {}?namespace={ABUSER}&label=app%3Dabuser HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         {RECIPE_LENGTH}: {recipe_bytes}\r\nContent-Length: {recipe_bytes}\r\n\r\n",
        spliced_path(&abuser.bundle().0),
        abuser.token()
    )
}
