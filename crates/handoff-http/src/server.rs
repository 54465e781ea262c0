//! A small web server for this machine alone: it answers `GET` and `HEAD` on the loopback
//! interface, one request per connection. Slow or numerous clients can't block others: requests in
//! progress and clients without a request are limited separately, and the oldest of the latter is
//! disconnected if there are too many.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

/// The maximum number of requests in progress. Further clients are told to retry.
const AT_ONCE: usize = 128;
/// The maximum number of clients without a request; below, how long each is kept at least.
const LISTENED_TO: usize = 128;
const SURELY: Duration = Duration::from_millis(250);
/// The maximum size of a request, in bytes.
const LARGEST: usize = 16 * 1024;
/// How long a client may take to send its request; below, to receive the next part of a response,
/// and all of it.
const TO_ASK: Duration = Duration::from_secs(10);
const TO_TAKE: Duration = Duration::from_secs(20);
const TO_TAKE_ALL: Duration = Duration::from_secs(60);
/// How long a client may continue to send after its response.
const TO_DRAIN: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
/// A parsed request.
pub struct Request {
    /// The path, without the query string.
    pub path: String,
}

/// A response.
pub struct Answer {
    /// The status line: `200 OK`.
    pub status: &'static str,
    /// The content type.
    pub kind: &'static str,
    /// Further headers, each with its line break.
    pub headers: String,
    /// The body.
    pub body: Body,
}

/// The body of a response.
pub enum Body {
    /// In memory.
    Text(String),
    /// A file of this size, which several clients may read concurrently.
    File(Arc<File>, u64),
}

impl Answer {
    /// A plain text response.
    pub fn text(status: &'static str, text: &str) -> Self {
        Self {
            status,
            kind: "text/plain; charset=utf-8",
            headers: String::new(),
            body: Body::Text(format!("{text}\n")),
        }
    }
}

/// A server on this machine.
pub struct Server {
    listeners: Vec<TcpListener>,
    port: u16,
}

impl Server {
    /// Listens on a port of the loopback interface; port 0 means any free one.
    pub fn bind(port: u16) -> io::Result<Self> {
        let first = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = first.local_addr()?.port();
        // Not every machine has IPv6.
        let second = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).ok();
        Ok(Self {
            listeners: [first].into_iter().chain(second).collect(),
            port,
        })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Serves requests on separate threads until the program ends.
    pub fn start(self, answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) {
        let answer: Arc<dyn Fn(&Request) -> Answer + Send + Sync> = Arc::new(answer);
        let counter = Arc::new(Counter::default());
        for listener in self.listeners {
            let (answer, counter, port) = (Arc::clone(&answer), Arc::clone(&counter), self.port);
            thread::spawn(move || {
                loop {
                    match listener.accept() {
                        Ok((client, from)) if from.ip().is_loopback() => {
                            serve(client, port, &counter, Arc::clone(&answer));
                        }
                        Ok(_) => {}
                        // Too many open files, or the client is gone: try the next one.
                        Err(_) => thread::sleep(Duration::from_millis(50)),
                    }
                }
            });
        }
    }
}

/// The clients without a request, and the number of requests in progress.
#[derive(Default)]
struct Counter {
    asking: Mutex<VecDeque<(Arc<TcpStream>, Instant)>>,
    answered: AtomicUsize,
}

impl Counter {
    fn asking(&self) -> MutexGuard<'_, VecDeque<(Arc<TcpStream>, Instant)>> {
        // No panic under the lock can leave it inconsistent.
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client without a request, disconnecting the oldest if there are too many.
    fn take_up(&self, client: &Arc<TcpStream>) {
        loop {
            let mut asking = self.asking();
            if asking.len() < LISTENED_TO {
                asking.push_back((Arc::clone(client), Instant::now()));
                return;
            }
            if let Some((oldest, _)) = asking.pop_front_if(|(_, since)| since.elapsed() >= SURELY) {
                let _ = oldest.shutdown(Shutdown::Both);
                continue;
            }
            drop(asking);
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Adds a client that may still be sending after its response, if there is room.
    fn has_room_for(&self, client: &Arc<TcpStream>) -> bool {
        let mut asking = self.asking();
        let is_room = asking.len() < LISTENED_TO;
        if is_room {
            asking.push_back((Arc::clone(client), Instant::now()));
        }
        is_room
    }

    /// Removes a client that has sent its request, or is gone.
    fn has_asked(&self, client: &Arc<TcpStream>) {
        self.asking().retain(|(one, _)| !Arc::ptr_eq(one, client));
    }
}

/// A slot for a request in progress.
struct Place(Arc<Counter>);

impl Place {
    fn take(counter: &Arc<Counter>) -> Option<Self> {
        let before = counter.answered.fetch_add(1, Ordering::SeqCst);
        let place = Self(Arc::clone(counter));
        // If there are too many, the slot is dropped, which frees it again.
        (before < AT_ONCE).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.answered.fetch_sub(1, Ordering::SeqCst);
    }
}

fn serve(
    client: TcpStream,
    port: u16,
    counter: &Arc<Counter>,
    answer: Arc<dyn Fn(&Request) -> Answer + Send + Sync>,
) {
    let client = Arc::new(client);
    counter.take_up(&client);
    let spawned = thread::Builder::new().spawn({
        let (client, counter) = (Arc::clone(&client), Arc::clone(counter));
        move || {
            let head = read_head(&client, TO_ASK);
            counter.has_asked(&client);
            // A client that is gone or too slow is not an error.
            let sent = head.and_then(|head| match Place::take(&counter) {
                Some(_place) => talk(&client, &head, port, &*answer),
                None => refuse(&client),
            });
            // The slot is free: a client that keeps sending does not block others.
            if sent.is_ok() && counter.has_room_for(&client) {
                drain(&client, TO_DRAIN);
                counter.has_asked(&client);
            }
        }
    });
    if spawned.is_err() {
        // If no thread can be started, the client is disconnected.
        counter.has_asked(&client);
    }
}

/// Tells a client to retry later.
fn refuse(mut client: &TcpStream) -> io::Result<()> {
    let busy = Answer::text("503 Service Unavailable", "too many at once: try again");
    // The kernel buffers this little, even if the client does not read.
    let Body::Text(text) = &busy.body else {
        return Ok(());
    };
    client.set_write_timeout(Some(TO_TAKE))?;
    client.write_all(answer_head(&busy, text.len() as u64).as_bytes())?;
    client.write_all(text.as_bytes())?;
    client.shutdown(Shutdown::Write)
}

fn talk(
    client: &TcpStream,
    head: &[u8],
    port: u16,
    answer: &(dyn Fn(&Request) -> Answer + Send + Sync),
) -> io::Result<()> {
    let (answer, with_body) = match understand(head, port) {
        Ok((request, with_body)) => (answer(&request), with_body),
        Err(refusal) => (refusal, true),
    };
    let length = match &answer.body {
        Body::Text(text) => text.len() as u64,
        Body::File(_, length) => *length,
    };
    let end = Instant::now() + TO_TAKE_ALL;
    write_by(client, answer_head(&answer, length).as_bytes(), end)?;
    if with_body {
        match &answer.body {
            Body::Text(text) => write_by(client, text.as_bytes(), end)?,
            Body::File(file, length) => send(client, file, *length, end)?,
        }
    }
    client.shutdown(Shutdown::Write)
}

/// Drains the rest of a request: if the connection were closed earlier, the client might not see
/// its response.
fn drain(mut client: &TcpStream, time: Duration) {
    let end = Instant::now() + time;
    let (mut part, mut left) = ([0; 2048], LARGEST);
    loop {
        let time = end.saturating_duration_since(Instant::now());
        if time.is_zero() || left == 0 || client.set_read_timeout(Some(time)).is_err() {
            return;
        }
        match client.read(&mut part) {
            Ok(0) | Err(_) => return,
            Ok(count) => left = left.saturating_sub(count),
        }
    }
}

/// Writes all bytes before the deadline; each write has its own, shorter timeout.
fn write_by(mut client: &TcpStream, mut bytes: &[u8], end: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        client.set_write_timeout(Some(left.min(TO_TAKE)))?;
        match client.write(bytes)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            count => bytes = &bytes[count..],
        }
    }
    Ok(())
}

/// Reads up to the empty line after the headers.
fn read_head(mut client: &TcpStream, time: Duration) -> io::Result<Vec<u8>> {
    let end = Instant::now() + time;
    let (mut head, mut searched) = (Vec::<u8>::new(), 0);
    let mut part = [0; 2048];
    while !head[searched..].windows(4).any(|four| four == b"\r\n\r\n") {
        searched = head.len().saturating_sub(3);
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() > LARGEST {
            return Err(ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut part)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => head.extend_from_slice(&part[..count]),
        }
    }
    Ok(head)
}

/// The path and whether the body is wanted, or the status that refuses the request.
pub fn asked(head: &[u8], port: u16) -> Result<(String, bool), &'static str> {
    match understand(head, port) {
        Ok((request, with_body)) => Ok((request.path, with_body)),
        Err(answer) => Err(answer.status),
    }
}

/// Parses a request; returns whether the body is wanted. Cross-site requests and foreign host names
/// are refused.
fn understand(head: &[u8], port: u16) -> Result<(Request, bool), Answer> {
    let bad = || {
        Answer::text(
            "400 Bad Request",
            "this is not a request that is understood here",
        )
    };
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        _ => return Err(bad()),
    }
    let (Some(method), Some(path)) = (parsed.method, parsed.path) else {
        return Err(bad());
    };
    let all = |name: &str| -> Vec<&[u8]> {
        let of = parsed
            .headers
            .iter()
            .filter(|h| h.name.eq_ignore_ascii_case(name));
        of.map(|h| h.value).collect()
    };
    // A foreign name may resolve to this host (DNS rebinding).
    let names = ["localhost", "127.0.0.1", "[::1]"];
    let own = names.map(|name| match port {
        80 => name.to_owned(),
        port => format!("{name}:{port}"),
    });
    let is_own = |host: &[u8]| {
        own.iter()
            .any(|name| name.as_bytes().eq_ignore_ascii_case(host))
    };
    if !matches!(all("Host")[..], [host] if is_own(host)) {
        let text = "this is served under the address that was printed, and no other";
        return Err(Answer::text("421 Misdirected Request", text));
    }
    let from_here = |origin: &&[u8]| {
        let origin = origin.strip_prefix(b"http://");
        origin.is_some_and(is_own)
    };
    let sites = all("Sec-Fetch-Site");
    let may = |site: &&[u8]| matches!(*site, b"same-origin" | b"none");
    if !sites.iter().all(may) || !all("Origin").iter().all(from_here) {
        let text = "another site may not lead here: open the address itself";
        return Err(Answer::text("403 Forbidden", text));
    }
    if method != "GET" && method != "HEAD" {
        let mut answer = Answer::text("405 Method Not Allowed", "only GET and HEAD");
        answer.headers = "Allow: GET, HEAD\r\n".to_owned();
        return Err(answer);
    }
    let path = path.split('?').next().unwrap_or(path).to_owned();
    Ok((Request { path }, method == "GET"))
}

fn answer_head(answer: &Answer, length: u64) -> String {
    format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {length}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n\
         X-Frame-Options: DENY\r\n{}\r\n",
        answer.status, answer.kind, answer.headers
    )
}

/// Sends a file that others may read concurrently.
fn send(client: &TcpStream, file: &File, length: u64, end: Instant) -> io::Result<()> {
    let mut part = vec![0; 64 * 1024];
    let mut at = 0;
    while at < length {
        let count = read_at(file, &mut part, at)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        write_by(client, &part[..count], end)?;
        at += count as u64;
    }
    Ok(())
}

#[cfg(unix)]
fn read_at(file: &File, part: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, part, at)
}

#[cfg(windows)]
fn read_at(file: &File, part: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, part, at)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::{Mutex, mpsc};

    use super::{AT_ONCE, Answer, LISTENED_TO, Request, Server, understand};

    fn ask(port: u16) -> TcpStream {
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(client, "GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n").unwrap();
        client
    }

    fn answer(mut client: TcpStream) -> String {
        let mut answered = String::new();
        client.read_to_string(&mut answered).unwrap();
        answered
    }

    #[test]
    fn who_has_not_asked_takes_no_place_from_those_who_have() {
        let server = Server::bind(0).unwrap();
        let port = server.port();
        server.start(|_| Answer::text("200 OK", "here"));
        let half = |_| {
            let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
            client.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
            client
        };
        let mut kept: Vec<TcpStream> = (0..3 * LISTENED_TO).map(half).collect();
        for _ in 0..10 {
            let answered = answer(ask(port));
            assert!(answered.ends_with("here\n"), "{answered}");
        }
        // The newest client can still send a request.
        let mut last = kept.pop().unwrap();
        write!(last, "st: localhost:{port}\r\n\r\n").unwrap();
        assert!(answer(last).ends_with("here\n"));
    }

    #[test]
    fn beyond_what_is_answered_at_once_a_client_is_asked_to_come_again() {
        let server = Server::bind(0).unwrap();
        let port = server.port();
        let (begun, begins) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let (begun, wait) = (Mutex::new(begun), Mutex::new(wait));
        server.start(move |_| {
            begun.lock().unwrap().send(()).unwrap();
            // Blocks until the test releases it.
            let _ = wait.lock().unwrap().recv();
            Answer::text("200 OK", "here")
        });
        let answered: Vec<TcpStream> = (0..AT_ONCE).map(|_| ask(port)).collect();
        for _ in 0..AT_ONCE {
            begins.recv().unwrap();
        }
        let refused = answer(ask(port));
        assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
        assert!(refused.ends_with("try again\n"), "{refused}");
        drop(go);
        for client in answered {
            assert!(answer(client).ends_with("here\n"));
        }
        assert!(answer(ask(port)).ends_with("here\n"));
    }

    #[test]
    fn who_has_its_answer_takes_no_place_however_long_it_stays() {
        let server = Server::bind(0).unwrap();
        let port = server.port();
        server.start(|_| Answer::text("200 OK", "here"));
        let mut staying = Vec::new();
        for number in 0..3 * AT_ONCE {
            let mut client = ask(port);
            let mut answered = String::new();
            client.read_to_string(&mut answered).unwrap();
            assert!(answered.ends_with("here\n"), "{number}: {answered}");
            // It keeps sending without closing.
            let _ = client.write_all(b"x");
            staying.push(client);
        }
    }

    fn status(request: &str) -> Result<(Request, bool), &'static str> {
        let request = request.replace('\n', "\r\n");
        understand(request.as_bytes(), 4000).map_err(|answer| answer.status)
    }

    #[test]
    fn whoever_comes_by_the_address_is_answered() {
        let path = |path: &str| Request {
            path: path.to_owned(),
        };
        for host in [
            "localhost:4000",
            "127.0.0.1:4000",
            "[::1]:4000",
            "LOCALHOST:4000",
        ] {
            let request = format!("GET /tip?x HTTP/1.1\nHost: {host}\nSec-Fetch-Site: none\n\n");
            assert_eq!(status(&request), Ok((path("/tip"), true)), "{host}");
        }
        let request = "HEAD / HTTP/1.0\nhost: localhost:4000\nSec-Fetch-Site: same-origin\nOrigin: http://localhost:4000\n\n";
        assert_eq!(status(request), Ok((path("/"), false)));
    }

    #[test]
    fn whoever_comes_by_another_name_or_from_another_site_is_not() {
        let host = "Host: localhost:4000\n";
        for (request, expected) in [
            ("GET / HTTP/1.1\n\n".to_owned(), "421 Misdirected Request"),
            (
                "GET / HTTP/1.1\nHost: evil.example:4000\n\n".to_owned(),
                "421 Misdirected Request",
            ),
            (
                "GET / HTTP/1.1\nHost: localhost\n\n".to_owned(),
                "421 Misdirected Request",
            ),
            (
                "GET / HTTP/1.1\nHost: localhost:4001\n\n".to_owned(),
                "421 Misdirected Request",
            ),
            (
                format!("GET / HTTP/1.1\n{host}Host: evil.example\n\n"),
                "421 Misdirected Request",
            ),
            (
                format!("GET / HTTP/1.1\n{host}Sec-Fetch-Site: cross-site\n\n"),
                "403 Forbidden",
            ),
            (
                format!("GET / HTTP/1.1\n{host}Sec-Fetch-Site: same-site\n\n"),
                "403 Forbidden",
            ),
            (
                format!("GET / HTTP/1.1\n{host}Origin: http://evil.example\n\n"),
                "403 Forbidden",
            ),
            (
                format!("GET / HTTP/1.1\n{host}Origin: null\n\n"),
                "403 Forbidden",
            ),
            (
                format!("POST / HTTP/1.1\n{host}\n"),
                "405 Method Not Allowed",
            ),
            ("nonsense\n\n".to_owned(), "400 Bad Request"),
        ] {
            assert_eq!(status(&request), Err(expected), "{request}");
        }
    }
}
