/** HEAD requests: their answers have headers and no body, whatever their type says. */
import type { Exchange } from './exchange.ts';

export async function headOf({ baseUrl }: Pick<Exchange, 'baseUrl'>, path: string, headers: Record<string, string> = {}): Promise<{ status: number; headers: Headers }> {
  const { status, headers: answered } = await fetch(new URL(path, baseUrl), { method: 'HEAD', headers });
  return { status, headers: answered };
}
