/** The floors' connection to NATS, with the settings that cost or save time in the product's own. */
import { connect, type NatsConnection } from 'nats';

export async function connectNats(url: string): Promise<NatsConnection> {
  const { host, username, password } = new URL(url);
  return connect({
    servers: host,
    ...(username && { user: decodeURIComponent(username), pass: decodeURIComponent(password) }),
    noAsyncTraces: true,
  });
}
