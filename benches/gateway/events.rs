//! How long an event takes from LibreChat to the client.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::Way;
use super::librechat::LibreChat;

/// So many events are measured on each way, after so many that warm everything up.
const EVENTS: usize = 3000;
const WARM_UP: usize = 300;

/// Between two events: a model is no faster.
const PAUSE: Duration = Duration::from_millis(2);

/// An event as LibreChat sends for a piece of text.
const EVENT: &[u8] = br#"event: message
data: {"event":"on_message_delta","data":{"id":"step_AAAAAAAAAAAAAAAAAAAAAAAA","delta":{"content":[{"type":"text","text":" handoff"}]}}}

"#;

pub async fn measure(librechat: &LibreChat, ways: &[Way]) {
    let mut clients = Vec::new();
    for Way(name, address) in ways {
        clients.push(Client::open(*address, name).await);
    }
    let mut took = vec![Vec::new(); ways.len()];
    for round in 0..WARM_UP + EVENTS {
        for turn in 0..ways.len() {
            let way = (round + turn) % ways.len();
            sleep(PAUSE).await;
            let began = Instant::now();
            librechat.say(ways[way].0, Bytes::from_static(EVENT));
            clients[way].hear(EVENT.len()).await;
            if round >= WARM_UP {
                took[way].push(began.elapsed());
            }
        }
    }
    println!("an event, from LibreChat to the client ({EVENTS} on each way, by turns)\n");
    println!(
        "{:12}{:>12}{:>12}{:>12}{:>12}",
        "", "50 %", "99 %", "later 50 %", "later 99 %"
    );
    let quantiles = took.into_iter().map(Quantiles::of).collect::<Vec<_>>();
    let direct = &quantiles[0];
    for (Way(name, _), times) in ways.iter().zip(&quantiles) {
        let later = [times.half - direct.half, times.most - direct.most];
        println!(
            "{name:12}{:>9.3} ms{:>9.3} ms{:>9.3} ms{:>9.3} ms",
            times.half, times.most, later[0], later[1]
        );
    }
    println!();
}

/// In milliseconds: half of all took no longer, and 99 in a hundred.
struct Quantiles {
    half: f64,
    most: f64,
}

impl Quantiles {
    fn of(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        let share = |percent: usize| all[(all.len() - 1) * percent / 100].as_secs_f64() * 1000.0;
        Self {
            half: share(50),
            most: share(99),
        }
    }
}

/// A client with its stream open.
pub struct Client(TcpStream);

impl Client {
    /// Opens a stream and waits until LibreChat has it.
    pub async fn open(address: std::net::SocketAddr, stream: &str) -> Self {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.set_nodelay(true).unwrap();
        let request =
            format!("GET /api/agents/chat/stream/{stream} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut client = Self(connection);
        let mut got = Vec::new();
        while !got.ends_with(b": open\n\n\r\n") {
            got.push(client.0.read_u8().await.unwrap());
        }
        client
    }

    /// Waits for one chunk of a body that is sent in chunks, its frame included.
    pub async fn hear(&mut self, length: usize) {
        let mut chunk = [0; 512];
        let framed = format!("{length:x}\r\n").len() + length + 2;
        self.0.read_exact(&mut chunk[..framed]).await.unwrap();
    }
}
