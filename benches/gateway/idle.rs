//! What streams take that are open and say nothing.

use axum::body::Bytes;

use super::events::Client;
use super::harness::Baton;
use super::librechat::LibreChat;

const STREAMS: u32 = 2000;

const EVENT: &[u8] = b"event: message\ndata: {\"event\":\"on_message_delta\",\"data\":{}}\n\n";

pub async fn measure(librechat: &LibreChat, baton: &Baton) {
    let before = baton.memory("VmRSS");
    let mut clients = Vec::new();
    for stream in 0..STREAMS {
        clients.push(Client::open(baton.address(), &stream.to_string()).await);
    }
    let opened = baton.memory("VmRSS");
    for (stream, client) in clients.iter_mut().enumerate() {
        librechat.say(&stream.to_string(), Bytes::from_static(EVENT));
        client.hear(EVENT.len()).await;
    }
    let heard = baton.memory("VmRSS");
    let mb = |kb: u64| f64::from(u32::try_from(kb).unwrap()) * 1024.0 / 1e6;
    println!("memory of the process (RSS)\n");
    println!("{:44}{:>7.1} MB", "without a stream", mb(before));
    println!(
        "{:44}{:>7.1} MB",
        format!("with {STREAMS} open"),
        mb(opened)
    );
    println!("{:44}{:>7.1} MB", "after an event on each", mb(heard));
    println!(
        "{:44}{:>7.1} kB",
        "a stream",
        mb(heard - before) * 1000.0 / f64::from(STREAMS)
    );
}
