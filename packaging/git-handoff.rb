class GitHandoff < Formula
  desc "Ledger of handoffs between AI agents, kept in Git"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license "MIT"

  on_macos do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/git-handoff-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@aarch64-apple-darwin@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/git-handoff-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/git-handoff-@VERSION@-aarch64-unknown-linux-gnu.tar.gz"
      sha256 "@aarch64-unknown-linux-gnu@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/git-handoff-@VERSION@-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "@x86_64-unknown-linux-gnu@"
    end
  end

  def install
    (buildpath/"share/git-handoff/installed-by").atomic_write "homebrew\n"
    prefix.install "bin", "share"
  end

  test do
    system bin/"git-handoff", "demo", "--quick", testpath/"demo"
  end
end
