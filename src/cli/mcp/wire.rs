//! The connection: standard input and output, and whether anyone is still there.

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::watch;

/// A connection that tells when it is over: the input ended, or nobody reads what is
/// answered.
pub(super) struct Wire<T> {
    inner: T,
    gone: watch::Sender<bool>,
    /// Whether a request came.
    is_opened: bool,
}

impl<T> Wire<T> {
    /// Watches over a connection, which is over when this is told so, too.
    pub(super) fn new(inner: T, gone: watch::Sender<bool>) -> Self {
        Self {
            inner,
            gone,
            is_opened: false,
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Wire<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sent = self.inner.send(message);
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
                message = self.inner.receive() => message,
                _ = is_gone.wait_for(|gone| *gone) => None,
            };
            match &message {
                None => {
                    self.gone.send_replace(true);
                }
                Some(RxJsonRpcMessage::<RoleServer>::Request(_)) => self.is_opened = true,
                // The library gives up on a client that begins with anything else.
                Some(_) if !self.is_opened => continue,
                Some(_) => {}
            }
            return message;
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
