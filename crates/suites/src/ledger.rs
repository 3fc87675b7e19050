//! Every sentence of the documentation of `Ledger`.

mod chosen;
mod claim;
mod rooms;
pub mod rows;
mod states;
mod without_row;

use crate::Rule;
use crate::ledgers::LedgerData;

pub const RULES: [&[Rule<LedgerData>]; 5] =
    [states::RULES, chosen::RULES, rooms::RULES, claim::RULES, without_row::RULES];
