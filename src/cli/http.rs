//! A small web server for this machine alone: it answers `GET` and `HEAD` on the
//! loopback interface, one request a connection, and nobody can keep it from
//! answering others, by being slow or by being many.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How many requests are answered at a time. Who comes beyond that is asked to come again, and beyond
/// twice as many, hung up on.
const AT_ONCE: usize = 128;
/// How large a request may be.
const LARGEST: usize = 16 * 1024;
/// How long a client may take to ask, to take the next part of an answer, and to take
/// all of it.
const TO_ASK: Duration = Duration::from_secs(10);
const TO_TAKE: Duration = Duration::from_secs(20);
const TO_TAKE_ALL: Duration = Duration::from_secs(600);
/// How long one may take to ask that is asked to come again.
const TO_BE_REFUSED: Duration = Duration::from_secs(1);

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The path, without what follows a question mark.
    pub path: String,
}

/// What it gets.
pub(super) struct Answer {
    /// The status: `200 OK`.
    pub status: &'static str,
    /// What kind of content it is.
    pub kind: &'static str,
    /// More headers, each with its line's end.
    pub headers: String,
    /// The content.
    pub body: Body,
}

/// The content of an answer.
pub(super) enum Body {
    /// It is in memory.
    Text(String),
    /// It is a file of so many bytes, which several clients may read at once.
    File(Arc<File>, u64),
}

impl Answer {
    /// A short text.
    pub(super) fn text(status: &'static str, text: &str) -> Self {
        Self {
            status,
            kind: "text/plain; charset=utf-8",
            headers: String::new(),
            body: Body::Text(format!("{text}\n")),
        }
    }
}

/// The sockets that are listened to.
pub(super) struct Server {
    listeners: Vec<TcpListener>,
    port: u16,
}

impl Server {
    /// Listens on a port of the loopback interface; on any that is free, where that is 0.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn bind(port: u16) -> io::Result<Self> {
        let first = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = first.local_addr()?.port();
        // Not every machine has the other one.
        let second = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).ok();
        Ok(Self {
            listeners: [first].into_iter().chain(second).collect(),
            port,
        })
    }

    /// The port.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Answers from now on, on threads of its own, until the program ends.
    pub(super) fn start(self, answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) {
        let answer: Arc<dyn Fn(&Request) -> Answer + Send + Sync> = Arc::new(answer);
        let busy = Arc::new(AtomicUsize::new(0));
        for listener in self.listeners {
            let (answer, busy, port) = (Arc::clone(&answer), Arc::clone(&busy), self.port);
            thread::spawn(move || {
                loop {
                    match listener.accept() {
                        Ok((client, from)) => {
                            let place = Place::take(&busy);
                            let answer = Arc::clone(&answer);
                            serve(client, from, port, place, answer);
                        }
                        // Too many files are open, or the client has gone: the next one may be luckier.
                        Err(_) => thread::sleep(Duration::from_millis(50)),
                    }
                }
            });
        }
    }
}

/// One of the places for clients that are answered at a time, or told that there is none.
struct Place {
    busy: Arc<AtomicUsize>,
    is_answered: bool,
}

impl Place {
    fn take(busy: &Arc<AtomicUsize>) -> Option<Self> {
        let before = busy.fetch_add(1, Ordering::SeqCst);
        let place = Self {
            busy: Arc::clone(busy),
            is_answered: before < AT_ONCE,
        };
        // Dropped, it is free again.
        (before < 2 * AT_ONCE).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

fn serve(
    mut client: TcpStream,
    from: SocketAddr,
    port: u16,
    place: Option<Place>,
    answer: Arc<dyn Fn(&Request) -> Answer + Send + Sync>,
) {
    let Some(place) = place.filter(|_| from.ip().is_loopback()) else {
        return;
    };
    let spawned = thread::Builder::new().spawn(move || {
        // All of it, so that it is taken until the end.
        let place = place;
        // A client that goes away or is too slow has only itself kept waiting.
        let _ = match place.is_answered {
            true => talk(&mut client, port, &*answer),
            false => refuse(&mut client),
        };
    });
    // Without a thread, the client is hung up on.
    drop(spawned);
}

/// Asks a client to come again.
fn refuse(client: &mut TcpStream) -> io::Result<()> {
    client.set_write_timeout(Some(TO_BE_REFUSED))?;
    read_head(client, TO_BE_REFUSED)?;
    let busy = Answer::text("503 Service Unavailable", "too many at once: try again");
    client.write_all(head(&busy, 0).as_bytes())?;
    client.shutdown(Shutdown::Write)
}

fn talk(
    client: &mut TcpStream,
    port: u16,
    answer: &(dyn Fn(&Request) -> Answer + Send + Sync),
) -> io::Result<()> {
    client.set_write_timeout(Some(TO_TAKE))?;
    let asked = read_head(client, TO_ASK)?;
    let (answer, with_body) = match understand(&asked, port) {
        Ok((request, with_body)) => (answer(&request), with_body),
        Err(refusal) => (refusal, true),
    };
    let length = match &answer.body {
        Body::Text(text) => text.len() as u64,
        Body::File(_, length) => *length,
    };
    let end = Instant::now() + TO_TAKE_ALL;
    client.write_all(head(&answer, length).as_bytes())?;
    if with_body {
        match &answer.body {
            Body::Text(text) => client.write_all(text.as_bytes())?,
            Body::File(file, length) => send(client, file, *length, end)?,
        }
    }
    client.shutdown(Shutdown::Write)?;
    // What was sent with the request is taken and left alone: closed on, a client might not
    // see its answer.
    client.set_read_timeout(Some(Duration::from_secs(1)))?;
    io::copy(&mut client.take(LARGEST as u64), &mut io::sink())?;
    Ok(())
}

/// Reads up to the empty line after the headers.
fn read_head(client: &mut TcpStream, time: Duration) -> io::Result<Vec<u8>> {
    let end = Instant::now() + time;
    let mut asked = Vec::new();
    let mut part = [0; 2048];
    while !asked.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || asked.len() > LARGEST {
            return Err(ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut part)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => asked.extend_from_slice(&part[..count]),
        }
    }
    Ok(asked)
}

/// What is asked, and whether more than the headers of the answer is wanted. Whoever
/// was sent here by another site, or under another name, gets nothing.
fn understand(asked: &[u8], port: u16) -> Result<(Request, bool), Answer> {
    let bad = || {
        Answer::text(
            "400 Bad Request",
            "this is not a request that is understood here",
        )
    };
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(asked) {
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
    // A name that another site had point here would make its pages part of this site.
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

fn head(answer: &Answer, length: u64) -> String {
    format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {length}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n\
         X-Frame-Options: DENY\r\n{}\r\n",
        answer.status, answer.kind, answer.headers
    )
}

/// Sends a file that others may read at the same time.
fn send(client: &mut TcpStream, file: &File, length: u64, end: Instant) -> io::Result<()> {
    let mut part = vec![0; 64 * 1024];
    let mut at = 0;
    while at < length {
        if Instant::now() > end {
            return Err(ErrorKind::TimedOut.into());
        }
        let count = read_at(file, &mut part, at)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        client.write_all(&part[..count])?;
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
    use super::{Request, understand};

    fn status(asked: &str) -> Result<(Request, bool), &'static str> {
        let asked = asked.replace('\n', "\r\n");
        understand(asked.as_bytes(), 4000).map_err(|answer| answer.status)
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
            let asked = format!("GET /tip?x HTTP/1.1\nHost: {host}\nSec-Fetch-Site: none\n\n");
            assert_eq!(status(&asked), Ok((path("/tip"), true)), "{host}");
        }
        let asked = "HEAD / HTTP/1.0\nhost: localhost:4000\nSec-Fetch-Site: same-origin\nOrigin: http://localhost:4000\n\n";
        assert_eq!(status(asked), Ok((path("/"), false)));
    }

    #[test]
    fn whoever_comes_by_another_name_or_from_another_site_is_not() {
        let host = "Host: localhost:4000\n";
        for (asked, expected) in [
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
            assert_eq!(status(&asked), Err(expected), "{asked}");
        }
    }
}
