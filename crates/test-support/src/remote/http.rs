//! A small web server in front of `git http-backend`.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use tiny_http::{Header, Request, Response, Server, StatusCode};

use super::served;
use crate::TestEnvironment;

/// The maximum number of requests in progress.
const THREADS: usize = 8;

/// Access rules; each password is the user's name backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody may do everything.
    Open,
    /// `writer`, like a workflow's token, may do everything, `reader` may read, others nothing.
    Users,
}

/// The server, stopped when it is dropped.
pub struct Http {
    server: Arc<Server>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    pub port: u16,
}

/// The state shared by all threads.
struct Shared {
    access: Access,
    backend: PathBuf,
    environment: Vec<(String, String)>,
    over: AtomicBool,
    requests: AtomicUsize,
    refused: AtomicUsize,
}

impl Http {
    /// Serves the environment's folder.
    pub fn start(env: &TestEnvironment, access: Access) -> Self {
        let server = Arc::new(Server::http("127.0.0.1:0").unwrap());
        let port = server.server_addr().to_ip().unwrap().port();
        let given = env.command("git");
        let text = |value: &std::ffi::OsStr| value.to_str().unwrap().to_owned();
        let set = given.get_envs();
        let mut environment: Vec<(String, String)> = set
            .filter_map(|(name, value)| Some((text(name), text(value?))))
            .collect();
        let root = served(env).to_str().unwrap().to_owned();
        environment.push(("GIT_PROJECT_ROOT".to_owned(), root));
        environment.push(("GIT_HTTP_EXPORT_ALL".to_owned(), "1".to_owned()));
        let folder = env.git(env.root(), &["--exec-path"]);
        let shared = Arc::new(Shared {
            access,
            backend: Path::new(folder.trim()).join("git-http-backend"),
            environment,
            over: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        });
        let work = |_| {
            let (server, shared) = (Arc::clone(&server), Arc::clone(&shared));
            thread::spawn(move || {
                while let Ok(request) = server.recv() {
                    shared.answer(request);
                    if shared.over.load(Ordering::SeqCst) {
                        break;
                    }
                }
            })
        };
        let threads = (0..THREADS).map(work).collect();
        Self {
            server,
            shared,
            threads,
            port,
        }
    }

    pub fn address(&self, name: &str) -> String {
        super::address("http", self.port, name)
    }

    /// How many requests were answered.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// The number of requests refused for lack of credentials.
    pub fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::SeqCst)
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        for _ in &self.threads {
            self.server.unblock();
        }
        for thread in self.threads.drain(..) {
            // A panic was already reported.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn answer(&self, request: Request) {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let user = match self.let_in(&request) {
            Ok(user) => user,
            Err(status) => {
                if status == 401 {
                    self.refused.fetch_add(1, Ordering::SeqCst);
                }
                let mut response = Response::from_string("no\n").with_status_code(status);
                if status == 401 {
                    response.add_header(header("WWW-Authenticate", "Basic realm=\"parcels\""));
                }
                // The client may be gone.
                let _ = request.respond(response);
                return;
            }
        };
        if let Err(error) = self.pass_on(request, user.as_deref())
            && !is_gone(&error)
        {
            panic!("git http-backend: {error}");
        }
    }

    /// The authenticated user, or the status that refuses the request.
    fn let_in(&self, request: &Request) -> Result<Option<String>, u16> {
        if self.access == Access::Open {
            return Ok(None);
        }
        let given = field(request, "Authorization").ok_or(401_u16)?;
        let allowed = |user: &&str| {
            let password: String = user.chars().rev().collect();
            given == format!("Basic {}", base64(&format!("{user}:{password}")))
        };
        let user = ["writer", "reader", "x-access-token"]
            .into_iter()
            .find(allowed);
        let user = user.ok_or(401_u16)?;
        let writes = request.url().contains("git-receive-pack");
        if user == "reader" && writes {
            Err(403)
        } else {
            Ok(Some(user.to_owned()))
        }
    }

    /// Passes a request on to git.
    fn pass_on(&self, mut request: Request, user: Option<&str>) -> io::Result<()> {
        let mut backend = self.backend(&request, user)?;
        let mut stdin = backend.stdin.take().unwrap();
        let mut stdout = BufReader::new(backend.stdout.take().unwrap());
        // git answers a push only after it has read all of the pack.
        let length = field(&request, "Content-Length").and_then(|length| length.parse().ok());
        let sent = io::copy(request.as_reader(), &mut stdin);
        drop(stdin);
        let cut = match sent {
            Ok(sent) => length.is_some_and(|length: u64| sent < length),
            Err(error) => error.kind() != io::ErrorKind::BrokenPipe,
        };
        if cut {
            // End git as web servers do: it would wait forever for the rest.
            backend.kill()?;
            backend.wait()?;
            return Ok(());
        }
        let mut status = 200;
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            stdout.read_line(&mut line)?;
            let line = line.trim_end();
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            match name {
                "Status" => status = value.split(' ').next().unwrap().parse().unwrap(),
                _ => headers.push(header(name, value)),
            }
        }
        let response = Response::new(StatusCode(status), headers, stdout, None, None);
        let answered = request.respond(response);
        // If the reader stopped early, the closed pipe ends git.
        backend.wait()?;
        answered
    }

    fn backend(&self, request: &Request, user: Option<&str>) -> io::Result<Child> {
        let (path, query) = match request.url().split_once('?') {
            Some((path, query)) => (path, query),
            None => (request.url(), ""),
        };
        // Start the backend directly: killing `git` would leave it running.
        let mut command = Command::new(&self.backend);
        command.env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("REQUEST_METHOD", request.method().as_str())
            .env("REMOTE_ADDR", "127.0.0.1")
            .env("SERVER_PROTOCOL", "HTTP/1.1");
        for (name, variable) in [
            ("Content-Type", "CONTENT_TYPE"),
            ("Content-Encoding", "HTTP_CONTENT_ENCODING"),
            ("Git-Protocol", "HTTP_GIT_PROTOCOL"),
        ] {
            if let Some(value) = field(request, name) {
                command.env(variable, value);
            }
        }
        // A chunked body has no length; git then reads to its end.
        if let Some(length) = field(request, "Content-Length") {
            command.env("CONTENT_LENGTH", length);
        }
        match user {
            Some(user) => command.env("REMOTE_USER", user),
            // Without a user, git refuses pushes unless configured otherwise.
            None => command
                .env("GIT_CONFIG_COUNT", "1")
                .env("GIT_CONFIG_KEY_0", "http.receivepack")
                .env("GIT_CONFIG_VALUE_0", "true"),
        };
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
    }
}

fn field(request: &Request, name: &'static str) -> Option<String> {
    let found = request
        .headers()
        .iter()
        .find(|header| header.field.equiv(name))?;
    Some(found.value.as_str().to_owned())
}

fn header(name: &str, value: &str) -> Header {
    Header::from_bytes(name, value).unwrap()
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, InvalidInput, NotConnected, UnexpectedEof,
    };
    let gone = [
        BrokenPipe,
        ConnectionAborted,
        ConnectionReset,
        // A truncated chunk.
        InvalidInput,
        NotConnected,
        UnexpectedEof,
    ];
    gone.contains(&error.kind())
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    let mut bytes = Cursor::new(text.as_bytes());
    loop {
        let mut group = [0_u8; 3];
        let count = bytes.read(&mut group).unwrap();
        if count == 0 {
            return out;
        }
        let bits = group
            .iter()
            .fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at)) as usize & 63];
            out.push(if at <= count { digit as char } else { '=' });
        }
    }
}
