#!/usr/bin/env bash
# Install code-server, the VS Code workbench that the end-to-end tests drive, from the npm registry.
#   usage: install-code-server.sh FOLDER VERSION
# Its own installer fetches headers and binaries from elsewhere, so scripts are off and the native
# modules that are needed are built here. Does nothing where FOLDER already holds VERSION.
set -euo pipefail

folder=$1
version=$2
stamp=$folder/installed-$version
[ -e "$stamp" ] && exit 0

rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
echo '{"private":true}' > package.json
npm install --ignore-scripts --no-save --no-audit --no-fund "code-server@$version"
npm rebuild argon2 --build-from-source

# node-pty's own build step calls npx, which would wait for an answer.
export npm_config_yes=true
cd node_modules/code-server/lib/vscode
npm install --omit=dev --ignore-scripts --no-audit --no-fund
npm rebuild node-pty @vscode/spdlog native-watchdog @parcel/watcher
mkdir -p node_modules/@vscode/ripgrep/bin
ln -sf "$(command -v rg)" node_modules/@vscode/ripgrep/bin/rg
ln -sfn node_modules node_modules.asar
(cd extensions && npm install --omit=dev --ignore-scripts --no-audit --no-fund)
touch "$stamp"
