use axum::body::Bytes;
use proptest::prelude::*;

use super::*;

/// Everything that the framer gives out for these chunks.
fn frame(chunks: &[&[u8]]) -> Vec<Piece> {
    let mut framer = Framer::default();
    let mut out = Vec::new();
    for chunk in chunks {
        framer.push(&Bytes::copy_from_slice(chunk), &mut out);
    }
    out.extend(framer.finish().map(Piece::Pass));
    out
}

fn bytes(pieces: &[Piece]) -> Vec<u8> {
    pieces
        .iter()
        .flat_map(|piece| match piece {
            Piece::Pass(bytes) => bytes.to_vec(),
            Piece::Event(event) => event.raw().to_vec(),
        })
        .collect()
}

fn events(pieces: &[Piece]) -> Vec<Vec<u8>> {
    pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Event(event) => Some(event.data()),
            Piece::Pass(_) => None,
        })
        .collect()
}

const STREAM: &str = "retry: 500\n: a comment\r\n\r\nevent: message\ndata: {\"event\":\"on_message_delta\",\"data\":{}}\n\n\
    event: message\r\ndata: {\"final\":true,\"a\":1}\r\n\r\ndata\ndata:\ndata: {\n\
    data: \"final\": true}\nid: 7\n\nevent: message\rdata:{\"final\":true,\"b\":2}\r\r: bye\n\ndata: [DONE]\n\ndata: {\"fin";

#[test]
fn only_what_may_be_a_final_is_held() {
    let pieces = frame(&[STREAM.as_bytes()]);
    let data = events(&pieces);
    let expected: [&[u8]; 3] = [
        b"{\"final\":true,\"a\":1}",
        b"{\n\"final\": true}",
        b"{\"final\":true,\"b\":2}",
    ];
    assert_eq!(data, expected);
    assert_eq!(bytes(&pieces), STREAM.as_bytes());
}

#[test]
fn every_way_to_chunk_it_gives_the_same() {
    let expected = events(&frame(&[STREAM.as_bytes()]));
    let single: Vec<&[u8]> = STREAM.as_bytes().chunks(1).collect();
    assert_eq!(events(&frame(&single)), expected);
    for at in 0..STREAM.len() {
        let (a, b) = STREAM.as_bytes().split_at(at);
        let pieces = frame(&[a, b]);
        assert_eq!(events(&pieces), expected, "split at {at}");
        assert_eq!(bytes(&pieces), STREAM.as_bytes(), "split at {at}");
    }
}

#[test]
fn what_cannot_be_a_final_passes_before_it_is_complete() {
    for part in [
        "event: message\ndata: {\"event\":\"on_mess",
        "data: {\"sync\":true,\"resumeState\":{\"agg",
        ": ping",
        "data: [DO",
        "id: 3\nretry: 9",
    ] {
        let mut out = Vec::new();
        Framer::default().push(&Bytes::from_static(part.as_bytes()), &mut out);
        assert_eq!(bytes(&out), part.as_bytes());
    }
}

#[test]
fn a_chunk_that_passes_is_not_copied() {
    let chunk = Bytes::from_static(
        b"event: message\ndata: {\"event\":\"x\"}\n\nevent: message\ndata: {\"event\":\"y\"}\n\n",
    );
    let mut out = Vec::new();
    Framer::default().push(&chunk, &mut out);
    let [Piece::Pass(passed)] = &out[..] else {
        panic!("{out:?}");
    };
    assert_eq!(passed.as_ptr(), chunk.as_ptr());
}

#[test]
fn other_data_leaves_the_other_lines() {
    let pieces =
        frame(&[b"event: message\r\ndata: {\"final\":1,\r\ndata: \"a\":2}\r\nid: 9\r\n\r\n"]);
    let [Piece::Pass(before), Piece::Event(event)] = &pieces[..] else {
        panic!("{pieces:?}");
    };
    assert_eq!(&before[..], b"event: message\r\n");
    assert_eq!(
        &event.with_data(b"{}")[..],
        b"data: {}\r\nid: 9\r\n\r\n".as_slice()
    );
}

proptest! {
    #[test]
    fn no_byte_is_lost_or_changed(
        text in "(event: m|data|data:|data: |\\{|\"final\"|\"event\"|:|true|\r|\n|\r\n|x|\\}){0,60}",
        cuts in proptest::collection::vec(0_usize..400, 0..8),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.push(0);
        cuts.push(text.len());
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &text.as_bytes()[w[0]..w[1]]).collect();
        let pieces = frame(&chunks);
        prop_assert_eq!(bytes(&pieces), text.as_bytes());
        prop_assert_eq!(events(&pieces), events(&frame(&[text.as_bytes()])));
    }
}

#[test]
fn frames_are_whole_events_however_they_are_cut() {
    let wire =
        "event: message\ndata: {\"a\":1}\n\n: still there\n\nevent: error\ndata: {}\n\ndata: half";
    for size in 1..wire.len() {
        let mut frames = Frames::default();
        let events: Vec<Event> = wire
            .as_bytes()
            .chunks(size)
            .flat_map(|chunk| frames.push(&Bytes::copy_from_slice(chunk)))
            .collect();
        let data: Vec<_> = events
            .iter()
            .map(|event| (event.name(), event.data()))
            .collect();
        assert_eq!(
            data,
            [
                (Some("message"), br#"{"a":1}"#.to_vec()),
                (None, Vec::new()),
                (Some("error"), b"{}".to_vec()),
            ],
            "{size}"
        );
    }
}
