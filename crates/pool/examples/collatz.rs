//! Work that is found while it is done: the numbers below LIMIT whose Collatz sequences reach 1
//! within STEPS steps, searched backwards from 1 by all CPUs: `collatz [LIMIT [STEPS]]`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write;

use bc_pool::{Cancel, WorkQueue, available_cpus, run};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let limit: u64 = args.next().map_or(Ok(10_000), |text| text.parse())?;
    let steps: u32 = args.next().map_or(Ok(20), |text| text.parse())?;

    let queue = WorkQueue::new(1024);
    queue.push((1_u64, 0_u32));
    let cancel = Cancel::new();
    let counts = run(available_cpus(), |_worker| {
        let mut count = 0_u64;
        queue.work(&cancel, |(number, step), local| {
            count += u64::from(number < limit);
            if step == steps {
                return;
            }
            local.push((number * 2, step + 1));
            // 3n+1 leads here from an odd n above 1, which has no other way to here.
            if number % 6 == 4 && number > 4 {
                local.push(((number - 1) / 3, step + 1));
            }
        });
        count
    })?;
    let found: u64 = counts.iter().sum();
    writeln!(
        std::io::stdout(),
        "{found} numbers below {limit} reach 1 within {steps} steps"
    )?;
    Ok(())
}
