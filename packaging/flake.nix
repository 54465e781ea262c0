{
  description = "A Git-backed ledger of handoffs between AI agents";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { nixpkgs, ... }:
    let
      version = "@VERSION@";
      archives = {
        x86_64-linux = { target = "x86_64-unknown-linux-gnu"; sha256 = "@x86_64-unknown-linux-gnu@"; };
        aarch64-linux = { target = "aarch64-unknown-linux-gnu"; sha256 = "@aarch64-unknown-linux-gnu@"; };
        x86_64-darwin = { target = "x86_64-apple-darwin"; sha256 = "@x86_64-apple-darwin@"; };
        aarch64-darwin = { target = "aarch64-apple-darwin"; sha256 = "@aarch64-apple-darwin@"; };
      };
      package = system: { target, sha256 }:
        let pkgs = nixpkgs.legacyPackages.${system}; in
        pkgs.stdenv.mkDerivation {
          pname = "git-handoff";
          inherit version;
          src = pkgs.fetchurl {
            url = "@REPOSITORY@/releases/download/v${version}/git-handoff-${version}-${target}.tar.gz";
            inherit sha256;
          };
          nativeBuildInputs = pkgs.lib.optional pkgs.stdenv.isLinux pkgs.autoPatchelfHook;
          buildInputs = pkgs.lib.optional pkgs.stdenv.isLinux pkgs.stdenv.cc.cc.lib;
          installPhase = ''
            mkdir -p $out
            cp -R bin share $out
            echo nix >$out/share/git-handoff/installed-by
          '';
          meta = {
            mainProgram = "git-handoff";
            license = pkgs.lib.licenses.mit;
            homepage = "@REPOSITORY@";
            platforms = [ system ];
          };
        };
    in {
      packages = builtins.mapAttrs (system: archive: { default = package system archive; }) archives;
    };
}
