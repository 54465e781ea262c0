//! What becomes of asking another repository for something.

/// Why another repository could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The `git` command does not start.
    #[error("git cannot be started")]
    NoGit(#[source] std::io::Error),
    /// It can't be reached, or fails in a way that may pass.
    #[error("git says: {said}")]
    Failed {
        /// What git says, in one line.
        said: String,
    },
    /// It does not let this user in, or not write.
    #[error("the remote gives no permission: {said}")]
    Denied {
        /// What git says, in one line.
        said: String,
    },
    /// Its rules keep this branch from being pushed to.
    #[error("the remote protects the branch: {said}")]
    Protected {
        /// What the remote says, in one line.
        said: String,
    },
    /// One of its hooks refused what was pushed.
    #[error("a hook of the remote refused it")]
    Refused {
        /// What the hook says, line by line.
        said: Vec<String>,
    },
    /// Its branch no longer leads on from where it was when it was fetched last.
    #[error("the remote's branch was rewritten")]
    Rewritten,
    /// It took too long, and was ended.
    #[error("git did not answer in time")]
    TimedOut,
    /// It was ended because someone asked for that.
    #[error("git was interrupted")]
    Interrupted,
    /// What it said can't be understood.
    #[error("git's answer is not the id of a commit")]
    Answer,
}

/// What became of a push that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The branch is now there, and was not before.
    Done,
    /// The branch was there already.
    Already,
    /// Someone else moved the branch first.
    Behind,
}
