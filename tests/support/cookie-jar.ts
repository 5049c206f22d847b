/** A browser as far as signing in at a provider needs one: it keeps cookies by host and path, and goes where it is sent, one step at a time. */

export interface Step {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Where the answer sends the browser, if it does. */
  readonly location: string | undefined;
}

export function openBrowser() {
  const jar = new Map<string, Map<string, { value: string; path: string }>>();

  async function go(address: string, form?: Record<string, string>): Promise<Step> {
    const url = new URL(address);
    const cookies = jar.get(url.host) ?? new Map<string, { value: string; path: string }>();
    jar.set(url.host, cookies);
    const sent = [...cookies].filter(([, { path }]) => url.pathname.startsWith(path)).map(([name, { value }]) => `${name}=${value}`);
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { ...(sent.length > 0 && { cookie: sent.join('; ') }) },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    });
    for (const line of response.headers.getSetCookie()) keep(cookies, line);
    const location = response.headers.get('location');
    return { status: response.status, headers: response.headers, text: await response.text(), location: location === null ? undefined : new URL(location, url).href };
  }

  return {
    go,
    /** The value of a cookie. */
    cookie: (host: string, name: string) => jar.get(host)?.get(name)?.value,
    setCookie: (host: string, name: string, value: string) => void jar.set(host, (jar.get(host) ?? new Map()).set(name, { value, path: '/' })),
  };
}

export type Browser = ReturnType<typeof openBrowser>;

function keep(cookies: Map<string, { value: string; path: string }>, line: string): void {
  const [pair = '', ...attributes] = line.split(/; */);
  const [name = '', ...value] = pair.split('=');
  const attribute = (key: string) => attributes.find((one) => one.toLowerCase().startsWith(`${key}=`))?.slice(key.length + 1);
  const isOver = attribute('max-age') === '0' || (attribute('expires') !== undefined && Date.parse(attribute('expires')!) < Date.now());
  if (isOver) cookies.delete(name);
  else cookies.set(name, { value: value.join('='), path: attribute('path') ?? '/' });
}
