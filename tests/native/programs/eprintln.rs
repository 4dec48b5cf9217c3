// A Rust program's log: nine writes a line.
fn timeline(ms: u64, event: &str, job: &str, detail: &str) {
    eprintln!("TIMELINE,{},{},{},{}", ms, event, job, detail);
}

fn main() {
    timeline(12, "GPU_START", "0b7f6c1e-6c0e-4a52-9b62-2f0a6f3f9d10", "worker=0,partition=3");
    timeline(15, "CHAN_SEND", "0b7f6c1e-6c0e-4a52-9b62-2f0a6f3f9d10", "");
    println!("TIMELINE,16,ON_STDOUT,job,");
}
