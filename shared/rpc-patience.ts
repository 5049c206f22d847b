/** Requests that may take long: they say that they are being worked on, so that a service that died is not waited for. */
import { createInbox, headers as natsHeaders, type Msg, type MsgHdrs, type NatsConnection, type Subscription } from 'nats';
import type { Contract } from './contract.ts';

/** Not the answer yet: the request is being worked on. */
const workingHeader = 'Aex-Working';
const workingMs = 1_500;
/** A service that says nothing for this long is taken for dead. */
const silenceMs = 5_000;

/** Whether a contract's deadline is longer than anybody should wait in silence. */
export function isLong({ deadlineMs = 0 }: Pick<Contract, 'deadlineMs'>): boolean {
  return deadlineMs > silenceMs;
}

/** Says so until the answer is there; ended by clearInterval. */
export function sayWorking(say: (headers: MsgHdrs) => void): NodeJS.Timeout {
  const headers = natsHeaders();
  headers.set(workingHeader, '1');
  return setInterval(() => say(headers), workingMs);
}

/** A request that may take long: waits while it is said to be worked on. Rejects with a code TIMEOUT, or the no-responders code 503, as `request` does. */
export async function requestPatiently(connection: NatsConnection, subject: string, payload: Uint8Array, options: { timeout: number; headers: MsgHdrs; inboxPrefix: string }): Promise<Msg> {
  const inbox = createInbox(options.inboxPrefix);
  const end = Date.now() + options.timeout;
  let subscription: Subscription | undefined;
  let silence: NodeJS.Timeout | undefined;
  try {
    return await new Promise<Msg>((resolve, reject) => {
      const give = (code: string) => reject(Object.assign(new Error(code), { code }));
      const listen = () => {
        clearTimeout(silence);
        silence = setTimeout(() => give('TIMEOUT'), Math.min(silenceMs, end - Date.now()));
      };
      subscription = connection.subscribe(inbox, {
        callback: (error, message) => {
          if (error) reject(error);
          else if (message.headers?.code === 503) give('503');
          else if (message.headers?.has(workingHeader)) listen();
          else resolve(message);
        },
      });
      listen();
      connection.publish(subject, payload, { reply: inbox, headers: options.headers });
    });
  } finally {
    clearTimeout(silence);
    subscription?.unsubscribe();
  }
}
