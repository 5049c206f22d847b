// The failures that a person is meant to read: one clear sentence, no stack trace.

/** What stops a start; the message is shown as it is, so it says what is wrong and what to do. */
export class StartFailure extends Error {
  override name = 'StartFailure';
}

/** A service refused its settings (exit code 78); starting it again cannot help. */
export class SettingsFailure extends StartFailure {
  override name = 'SettingsFailure';
}

/** The `code` of a system error (`EACCES`, `EADDRINUSE`, …), when it has one. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
