use midflight_sim::check::{Subject, run, run_traced};
use midflight_sim::reads::check::ReadsSubject;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let from: u64 = args[1].parse().unwrap();
    let to: u64 = args[2].parse().unwrap();
    if args.len() > 3 {
        let trial = ReadsSubject::draw(from);
        println!("{:#?}", trial);
        let (o, lines) = run_traced::<ReadsSubject>(&trial);
        for l in lines {
            println!("{l}");
        }
        println!("{:?}", o.violation);
        return;
    }
    let mut bad = 0;
    for seed in from..to {
        let t = std::time::Instant::now();
        let r = std::panic::catch_unwind(|| run::<ReadsSubject>(&ReadsSubject::draw(seed)));
        match r {
            Ok(o) => {
                if let Some(v) = o.violation {
                    bad += 1;
                    let w = format!("{}", v.broken);
                    println!("seed {seed} at {} ms: {}", v.at / 1_000_000, &w[..w.len().min(400)]);
                }
                if t.elapsed().as_millis() > 1500 {
                    println!("seed {seed} took {:?} events {}", t.elapsed(), o.events);
                }
            }
            Err(e) => {
                bad += 1;
                println!("seed {seed} PANIC {:?}", e.downcast_ref::<String>());
            }
        }
    }
    println!("{bad} bad");
}
