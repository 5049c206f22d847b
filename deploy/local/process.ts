// Keeps one child process up: starts it, tells when it is ready, starts it again when it ends by itself, stops it.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from './command.ts';
import { SettingsFailure, StartFailure } from './failure.ts';
import { rotate, sizeOf, textSince } from './log-file.ts';

const firstDelayMs = 250;
const longestDelayMs = 5_000;
const steadyMs = 10_000;
const pollMs = 25;
const lastWordsBytes = 4096;
const settingsExitCode = 78; // EX_CONFIG
const endingSignals = new Set<NodeJS.Signals>(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGABRT', 'SIGHUP']);

/** How a process is started, how it tells that it is ready, and how it is stopped. */
export interface ProcessSpec {
  name: string;
  command: Command;
  /** Standard output is appended here, error output to `errorPath`; the two may be one file. */
  outputPath: string;
  errorPath: string;
  /** Asked again and again with what was printed since this start. */
  isReady: (output: string) => boolean | Promise<boolean>;
  readyWithinMs: number;
  /** How often a first start is tried when the process ends before it is ready. */
  attempts: number;
  stopSignal: 'SIGTERM' | 'SIGINT';
  stopWithinMs: number;
  /** Told, in one line, what happens after the first start. */
  report: (line: string) => void;
}

/** One process that is kept up from `start` until `stop` or `kill`. */
export class SupervisedProcess {
  readonly name: string;
  readonly outputPath: string;
  readonly #spec: ProcessSpec;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #end: { code: number | null; how: string } = { code: null, how: 'not started' };
  #ready = false;
  /** Present while the process is wanted; aborted when it no longer is. */
  #wanted: AbortController | undefined;

  constructor(spec: ProcessSpec) {
    this.#spec = spec;
    this.name = spec.name;
    this.outputPath = spec.outputPath;
  }

  /** The process id, or undefined while it is down. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** The status that the process ended with last; null when a signal ended it, or while none has. */
  get exitCode(): number | null {
    return this.#end.code;
  }

  /** Starts the process and resolves when it is ready; from then on a crash is followed by another start. */
  async start(): Promise<void> {
    if (this.#wanted) return this.whenReady();
    const wanted = (this.#wanted = new AbortController());
    await this.#ended;
    try {
      await this.#startFirst(wanted.signal);
    } catch (error) {
      if (this.#wanted === wanted) await this.stop();
      throw error;
    }
    void this.#keepUp(wanted.signal);
  }

  /** Resolves when the process is ready, for instance after a crash. */
  async whenReady(withinMs = this.#spec.readyWithinMs): Promise<void> {
    for (const deadline = Date.now() + withinMs; !this.#ready; await sleep(pollMs)) {
      if (Date.now() > deadline) throw new StartFailure(`${this.name} was not ready within ${withinMs / 1000} s.`);
    }
  }

  /** Asks the process to end, makes it end when it takes too long, and leaves it down. */
  async stop(signal: NodeJS.Signals = this.#spec.stopSignal): Promise<void> {
    this.#unwant();
    const child = this.#child;
    if (!child) return;
    child.kill(signal);
    child.kill('SIGCONT'); // a process that was halted by SIGSTOP hears nothing else
    const timer = setTimeout(() => child.kill('SIGKILL'), this.#spec.stopWithinMs);
    await this.#ended;
    clearTimeout(timer);
  }

  /**
   * Sends a signal. One that ends the process leaves it down until `start`, unless `restart` is set; the
   * promise resolves when the process has ended. Any other signal is just sent.
   */
  async kill(signal: NodeJS.Signals = 'SIGKILL', { restart = false } = {}): Promise<void> {
    const ends = endingSignals.has(signal);
    if (ends && !restart) this.#unwant();
    this.#child?.kill(signal);
    if (ends) await this.#ended;
  }

  #unwant(): void {
    this.#wanted?.abort();
    this.#wanted = undefined;
  }

  async #startFirst(wanted: AbortSignal): Promise<void> {
    const deadline = Date.now() + this.#spec.readyWithinMs;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#launch(wanted);
      } catch (error) {
        const final = attempt >= this.#spec.attempts || Date.now() >= deadline;
        if (final || wanted.aborted || error instanceof SettingsFailure) throw error;
        await sleep(firstDelayMs * attempt, undefined, { signal: wanted }).catch(() => undefined);
      }
    }
  }

  async #keepUp(wanted: AbortSignal): Promise<void> {
    for (let delay = firstDelayMs; ; delay = Math.min(delay * 2, longestDelayMs)) {
      const since = Date.now();
      await this.#ended;
      if (wanted.aborted) return;
      if (Date.now() - since > steadyMs) delay = firstDelayMs;
      this.#spec.report(`${this.name} ended by itself (${this.#end.how}); starting it again in ${delay} ms.`);
      await sleep(delay, undefined, { signal: wanted }).catch(() => undefined);
      if (wanted.aborted) return;
      await this.#launch(wanted).catch((error: unknown) => this.#giveUpOnSettings(error));
    }
  }

  #giveUpOnSettings(error: unknown): void {
    if (!(error instanceof SettingsFailure)) return;
    this.#spec.report(error.message);
    this.#unwant();
  }

  async #launch(wanted: AbortSignal): Promise<void> {
    const { outputPath, errorPath } = this.#spec;
    await rotate(outputPath);
    const from = { output: await sizeOf(outputPath), errors: await sizeOf(errorPath) };
    if (wanted.aborted) throw this.#stopped();
    const child = this.#spawn();
    const deadline = Date.now() + this.#spec.readyWithinMs;
    // An answer that is still awaited when the process ends will not come soon, if ever.
    const isReady = async () => Promise.race([this.#spec.isReady(await textSince(outputPath, from.output)), this.#ended]);
    while ((await isReady()) !== true) {
      if (this.#child !== child) throw wanted.aborted ? this.#stopped() : await this.#startFailure(from.errors);
      if (Date.now() > deadline) throw await this.#tooLate();
      await sleep(pollMs);
    }
    this.#ready = this.#child === child;
  }

  #spawn(): ChildProcess {
    const { file, args, ...options } = this.#spec.command;
    const output = openSync(this.#spec.outputPath, 'a', 0o600);
    const errors = openSync(this.#spec.errorPath, 'a', 0o600);
    // Files, not pipes: what a process prints neither waits for this one nor is lost with it. The pipe on
    // standard input ends when this process dies, however it dies. A session of its own keeps a terminal's
    // Ctrl-C from reaching all at once what has to stop in order.
    const child = spawn(file, args, { ...options, detached: true, stdio: ['pipe', output, errors] });
    closeSync(output);
    closeSync(errors);
    child.stdin?.on('error', () => undefined);
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      const end = (code: number | null, how: string) => {
        this.#end = { code, how };
        this.#child = undefined;
        this.#ready = false;
        resolve();
      };
      child.once('error', (error) => end(null, error.message));
      child.once('exit', (code, signal) => end(code, signal ?? `exit code ${code}`));
    });
    return child;
  }

  #stopped(): StartFailure {
    return new StartFailure(`${this.name} was stopped while it started.`);
  }

  async #tooLate(): Promise<StartFailure> {
    this.#child?.kill('SIGKILL');
    await this.#ended;
    return new StartFailure(`${this.name} was not ready within ${this.#spec.readyWithinMs / 1000} s; see ${this.outputPath}.`);
  }

  async #startFailure(from: number): Promise<StartFailure> {
    const lastWords = (await textSince(this.#spec.errorPath, from)).slice(-lastWordsBytes).trim();
    if (this.#end.code === settingsExitCode && lastWords) return new SettingsFailure(lastWords);
    return new StartFailure(`${this.name} could not start (${this.#end.how}); see ${this.outputPath}.${lastWords && `\n${lastWords}`}`);
  }
}
