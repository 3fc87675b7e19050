//! Every sentence of the documentation of `Ledger`.

mod chosen;
mod claim;
mod read_keys;
mod rooms;
pub mod rows;
mod states;
mod without_row;

use crate::Rule;
use crate::ledgers::LedgerData;

pub const RULES: [&[Rule<LedgerData>]; 6] =
    [states::RULES, read_keys::RULES, chosen::RULES, rooms::RULES, claim::RULES, without_row::RULES];
