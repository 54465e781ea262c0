//! The connection: standard input and output, and whether anyone is still there.

use std::pin::Pin;

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, ErrorData, GetMeta, ProtocolVersion};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::AsyncRead;
use tokio::sync::watch;

use super::lines::{LONGEST, Line, Lines};
use super::message::{Refused, message};

/// A connection that tells when it is over: the input ended, or nobody reads what is
/// answered. It answers what is no message itself.
pub(super) struct Wire<R, W> {
    lines: Lines<R>,
    output: W,
    gone: watch::Sender<bool>,
    /// Whether a request came that decides the era.
    is_opened: bool,
    /// An answer under way: nobody may wait for a message long enough for it to go.
    answer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<R: AsyncRead + Unpin + Send, W: Transport<RoleServer>> Wire<R, W> {
    /// Watches over a connection, which is over when this is told so, too.
    pub(super) fn new(input: R, output: W, gone: watch::Sender<bool>) -> Self {
        Self {
            lines: Lines::new(input, LONGEST),
            output,
            gone,
            is_opened: false,
            answer: None,
        }
    }

    /// The next message. Whoever stops waiting for it loses nothing.
    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(answer) = &mut self.answer {
                answer.await;
                self.answer = None;
            }
            let taken = match self.lines.next().await? {
                Line::Whole(line) => message(&line),
                Line::TooLong(id) => {
                    let text = format!("a line may have {LONGEST} bytes, and this one has more");
                    let error = ErrorData::invalid_request(text, None);
                    Err(Box::new(Refused { id, error }))
                }
            };
            match taken {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(refused) => {
                    let Refused { id, error } = *refused;
                    let sent = self.send(TxJsonRpcMessage::<RoleServer>::error(error, id));
                    self.answer = Some(Box::pin(async { drop(sent.await) }));
                }
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for Wire<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: Transport<RoleServer>,
{
    type Error = W::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sent = self.output.send(message);
        let gone = self.gone.clone();
        async move {
            let sent = sent.await;
            if sent.is_err() {
                gone.send_replace(true);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut is_gone = self.gone.subscribe();
        loop {
            let message = tokio::select! {
                message = self.next() => message,
                _ = is_gone.wait_for(|gone| *gone) => None,
            };
            match &message {
                None => {
                    self.gone.send_replace(true);
                }
                Some(RxJsonRpcMessage::<RoleServer>::Request(request)) => {
                    self.is_opened |= opens(&request.request);
                }
                // Until then the library gives up on a client that says anything else.
                Some(_) if !self.is_opened => continue,
                Some(_) => {}
            }
            return message;
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output.close().await
    }
}

/// Whether the library takes this for the first request of an era.
fn opens(request: &ClientRequest) -> bool {
    let newest = ProtocolVersion::V_2026_07_28;
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => {
            let meta = other.get_meta();
            let version = meta.protocol_version();
            let is_known = |version| ProtocolVersion::KNOWN_VERSIONS.contains(&version);
            meta.missing_required_keys(&newest).is_empty() && version.is_some_and(is_known)
        }
    }
}
