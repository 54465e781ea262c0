//! A proxy between git and a server, which breaks connections as it is told.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// What git sends.
    Up,
    /// What the server sends.
    Down,
}

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It is closed as soon as it is there.
    Refuse,
    /// It is closed when so many bytes went this way.
    Cut(Way, u64),
    /// Nothing goes on in either direction once so many bytes went this way.
    Stall(Way, u64),
}

/// The proxy, gone with all its connections when it is dropped.
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
    /// What each connection carried, up and down.
    carried: Vec<[u64; 2]>,
    always: Option<Fault>,
}

impl Proxy {
    /// Passes on to a port of this machine.
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

    /// What happens to the next connections, one after the other; to those after them, nothing,
    /// or what [`Proxy::always`] says.
    pub fn next(&self, faults: &[Fault]) {
        let mut plan = self.shared.plan.lock().unwrap();
        plan.next = faults.iter().copied().collect();
    }

    /// What happens to every connection for which nothing else was said.
    pub fn always(&self, fault: Fault) {
        self.shared.plan.lock().unwrap().always = Some(fault);
    }

    /// Does no harm from now on, and forgets what was carried.
    pub fn heal(&self) {
        *self.shared.plan.lock().unwrap() = Plan::default();
    }

    /// How many connections it broke that were under way.
    pub fn broken(&self) -> usize {
        self.shared.broken.load(Ordering::SeqCst)
    }

    /// How many bytes each connection carried since then, up and down.
    pub fn carried(&self) -> Vec<[u64; 2]> {
        self.shared.plan.lock().unwrap().carried.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // Wakes it up.
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
    for way in [Way::Up, Way::Down] {
        let (from, into) = match way {
            Way::Up => (&client, &server),
            Way::Down => (&server, &client),
        };
        let (from, into) = (from.try_clone().unwrap(), into.try_clone().unwrap());
        let (shared, stalled) = (Arc::clone(shared), Arc::clone(&stalled));
        thread::spawn(move || carry(&shared, number, way, fault, &stalled, from, into));
    }
}

/// Carries bytes one way until an end or the fault.
fn carry(
    shared: &Shared,
    number: usize,
    way: Way,
    fault: Fault,
    stalled: &AtomicBool,
    mut from: TcpStream,
    mut into: TcpStream,
) {
    let limit = match fault {
        Fault::Cut(of, bytes) | Fault::Stall(of, bytes) if of == way => bytes,
        _ => u64::MAX,
    };
    let mut carried = 0;
    let mut bytes = [0; 8192];
    loop {
        if carried >= limit {
            shared.broken.fetch_add(1, Ordering::SeqCst);
            if matches!(fault, Fault::Stall(..)) {
                // Both ends stay open until the proxy goes.
                stalled.store(true, Ordering::SeqCst);
                return;
            }
            let _ = from.shutdown(Shutdown::Both);
            let _ = into.shutdown(Shutdown::Both);
            return;
        }
        let most = usize::try_from(limit - carried).map_or(bytes.len(), |n| n.min(bytes.len()));
        let Ok(count) = from.read(&mut bytes[..most]) else {
            break;
        };
        if stalled.load(Ordering::SeqCst) {
            return;
        }
        carried += count as u64;
        // Before it arrives, so that whoever has it finds it counted.
        if let Some(sum) = shared.plan.lock().unwrap().carried.get_mut(number) {
            sum[usize::from(way == Way::Down)] = carried;
        }
        if count == 0 || into.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    // The other direction may go on.
    let _ = into.shutdown(Shutdown::Write);
}
