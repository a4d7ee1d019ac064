//! How fast a large file comes through.

use std::net::SocketAddr;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Way;
use super::librechat::FILE;

/// So often each way is taken, after once that warms it up.
const ROUNDS: usize = 9;

pub async fn measure(ways: &[Way]) {
    let mut rates = vec![Vec::new(); ways.len()];
    for round in 0..=ROUNDS {
        for turn in 0..ways.len() {
            let way = (round + turn) % ways.len();
            let rate = fetch(ways[way].1).await;
            if round > 0 {
                rates[way].push(rate);
            }
        }
    }
    let median = |mut rates: Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let rates: Vec<f64> = rates.into_iter().map(median).collect();
    println!(
        "a file of {} MiB (the median of {ROUNDS}, by turns)\n",
        FILE >> 20
    );
    for (Way(name, _), rate) in ways.iter().zip(&rates) {
        println!("{name:12}{rate:>7.0} MiB/s");
    }
    if let [_, baton, nginx] = rates[..] {
        println!("{:12}{:>7.2}x", "Baton/nginx", baton / nginx);
    }
    println!();
}

/// Fetches the file, and tells how many MiB a second came.
async fn fetch(address: SocketAddr) -> f64 {
    let began = Instant::now();
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /file HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut buffer = vec![0; 256 << 10];
    let mut length = 0;
    loop {
        match connection.read(&mut buffer).await.unwrap() {
            0 => break,
            read => length += read as u64,
        }
    }
    assert!(length > FILE, "{length} bytes with the head");
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let mebibytes = (length >> 20) as f64;
    mebibytes / began.elapsed().as_secs_f64()
}
