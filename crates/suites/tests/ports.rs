//! Each rule of the ports, for each store and each ledger.

use libtest_mimic::Arguments;

fn main() {
    libtest_mimic::run(&Arguments::from_args(), cloakroom_suites::trials()).exit();
}
