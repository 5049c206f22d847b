/** Structured logs, one JSON object a line, with the request's id in each line that belongs to a request. */
import { pino, type Logger as PinoLogger } from 'pino';

export type Logger = PinoLogger;

/** Makes a service's logger. Fields that could hold a secret are cut out wherever they appear. */
export function makeLogger(service: string, level: string): Logger {
  return pino({
    level,
    base: { service },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: {
      paths: ['headers.authorization', 'headers.cookie', 'headers["x-access-grant"]', 'headers["x-delete-token"]', 'headers["x-transfer-plan"]'],
      remove: true,
    },
  }, destination());
}

/** Lines are gathered and written a few times a second: a write for each would cost more than the request it tells of. */
function destination() {
  return pino.destination({ dest: 1, sync: false, minLength: 8_192, periodicFlush: 250 });
}
