/** Where requests to /mcp may come from. A page elsewhere must reach no exchange on a private address or on the visitor's own machine (interface chapter: Hosted MCP). */

export interface McpAccess {
  /** Scheme, host and port of the exchange's own pages. */
  readonly ownOrigin: string;
  /** Names without ports: a name that was rebound to our address keeps its own. */
  readonly hosts: ReadonlySet<string>;
  readonly origins: ReadonlySet<string>;
}

/** Beside the exchange's own name: the other names of this machine, when that is where it runs, and what the settings add. */
export function mcpAccess(baseUrl: string, allowed: { readonly hosts: readonly string[]; readonly origins: readonly string[] }): McpAccess {
  const { hostname, origin } = new URL(baseUrl);
  const isLocal = localNames.includes(hostname);
  return { ownOrigin: origin, hosts: new Set([hostname, ...(isLocal ? localNames : []), ...allowed.hosts]), origins: new Set([origin, ...allowed.origins]) };
}

const localNames = ['localhost', '127.0.0.1', '[::1]'];

/** Whether a Host header names an allowed host, on any port. */
export function isAllowedHost(host: string | undefined, { hosts }: McpAccess): boolean {
  const [, name] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(host ?? '') ?? [];
  return name !== undefined && hosts.has(name.toLowerCase());
}

/** Whether a request with this Origin may come; only browsers send one. `host` was found allowed before. */
export function isAllowedOrigin({ origin, host }: { origin: string | undefined; host: string }, { ownOrigin, origins }: McpAccess): boolean {
  if (origin === undefined || origins.has(origin)) return true;
  return origin === `${new URL(ownOrigin).protocol}//${host.toLowerCase()}`;
}
