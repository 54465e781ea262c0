//! A proxy between git and a server that breaks connections on demand.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// A direction of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From git.
    Up,
    /// From the server.
    Down,
}

/// A fault injected into a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Closed as soon as it is open.
    Refuse,
    /// Closed after this many bytes in this direction.
    Cut(Direction, u64),
    /// Both directions stall after this many bytes in this one.
    Stall(Direction, u64),
}

/// The proxy, which closes all its connections when dropped.
pub struct Proxy {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    pub port: u16,
}

struct Shared {
    over: AtomicBool,
    broken: AtomicUsize,
    plan: Mutex<Plan>,
    open: Mutex<Vec<TcpStream>>,
}

#[derive(Default)]
struct Plan {
    next: VecDeque<Fault>,
    /// The bytes that each connection carried, up and down.
    carried: Vec<[u64; 2]>,
    always: Option<Fault>,
}

impl Proxy {
    /// Starts a proxy for a local port.
    pub fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            over: AtomicBool::new(false),
            broken: AtomicUsize::new(0),
            plan: Mutex::default(),
            open: Mutex::default(),
        });
        let own = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            for client in listener.incoming() {
                if own.over.load(Ordering::SeqCst) {
                    break;
                }
                if let Ok(client) = client {
                    connect(&own, client, to);
                }
            }
        });
        Self {
            shared,
            thread: Some(thread),
            port,
        }
    }

    /// The faults of the next connections, in order; later ones have none, or that of
    /// [`Proxy::always`].
    pub fn next(&self, faults: &[Fault]) {
        let mut plan = self.shared.plan.lock().unwrap();
        plan.next = faults.iter().copied().collect();
    }

    /// The fault of every connection without another one.
    pub fn always(&self, fault: Fault) {
        self.shared.plan.lock().unwrap().always = Some(fault);
    }

    /// Clears all faults and counts.
    pub fn heal(&self) {
        *self.shared.plan.lock().unwrap() = Plan::default();
    }

    /// The number of connections broken in transit.
    pub fn broken(&self) -> usize {
        self.shared.broken.load(Ordering::SeqCst)
    }

    /// The bytes per connection since then, up and down.
    pub fn carried(&self) -> Vec<[u64; 2]> {
        self.shared.plan.lock().unwrap().carried.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // Wakes up the accepting thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        for stream in self.shared.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let _ = self.thread.take().unwrap().join();
    }
}

fn connect(shared: &Arc<Shared>, client: TcpStream, to: u16) {
    let (fault, number) = {
        let mut plan = shared.plan.lock().unwrap();
        let fault = plan.next.pop_front().or(plan.always);
        plan.carried.push([0, 0]);
        (fault.unwrap_or(Fault::None), plan.carried.len() - 1)
    };
    if fault == Fault::Refuse {
        return;
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else {
        return;
    };
    let pair = [&client, &server].map(|stream| stream.try_clone().unwrap());
    shared.open.lock().unwrap().extend(pair);
    let stalled = Arc::new(AtomicBool::new(false));
    for direction in [Direction::Up, Direction::Down] {
        let (from, into) = match direction {
            Direction::Up => (&client, &server),
            Direction::Down => (&server, &client),
        };
        let flow = Flow {
            number,
            direction,
            fault,
            stalled: Arc::clone(&stalled),
            from: from.try_clone().unwrap(),
            into: into.try_clone().unwrap(),
        };
        let shared = Arc::clone(shared);
        thread::spawn(move || flow.carry(&shared));
    }
}

/// One direction of a connection.
struct Flow {
    number: usize,
    direction: Direction,
    fault: Fault,
    /// Whether both directions have stalled.
    stalled: Arc<AtomicBool>,
    from: TcpStream,
    into: TcpStream,
}

impl Flow {
    /// Copies bytes until the end or the fault.
    fn carry(mut self, shared: &Shared) {
        let limit = match self.fault {
            Fault::Cut(of, bytes) | Fault::Stall(of, bytes) if of == self.direction => bytes,
            _ => u64::MAX,
        };
        let mut carried = 0;
        let mut bytes = [0; 8192];
        loop {
            if carried >= limit {
                shared.broken.fetch_add(1, Ordering::SeqCst);
                if matches!(self.fault, Fault::Stall(..)) {
                    // Both ends stay open until the proxy is dropped.
                    self.stalled.store(true, Ordering::SeqCst);
                    return;
                }
                let _ = self.from.shutdown(Shutdown::Both);
                let _ = self.into.shutdown(Shutdown::Both);
                return;
            }
            let most = usize::try_from(limit - carried).map_or(bytes.len(), |n| n.min(bytes.len()));
            let Ok(count) = self.from.read(&mut bytes[..most]) else {
                break;
            };
            if self.stalled.load(Ordering::SeqCst) {
                return;
            }
            carried += count as u64;
            // Counted before delivery, so that the receiver sees the count.
            if let Some(sum) = shared.plan.lock().unwrap().carried.get_mut(self.number) {
                sum[usize::from(self.direction == Direction::Down)] = carried;
            }
            if count == 0 || self.into.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        // The other direction may continue.
        let _ = self.into.shutdown(Shutdown::Write);
    }
}
