/** Makes a certificate for names, signed by itself: no tool of the machine is needed, and no key is kept in a file of the project. */
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

export interface Certificate {
  /** Both PEM. */
  readonly key: string;
  readonly cert: string;
}

const day = 86_400_000;

/** DER: a tag, a length, the content. */
function der(tag: number, ...contents: Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  const digits = content.length < 128 ? [content.length] : content.length < 256 ? [0x81, content.length] : [0x82, content.length >> 8, content.length & 255];
  return Buffer.concat([Buffer.from([tag, ...digits]), content]);
}
const sequence = (...contents: Uint8Array[]) => der(0x30, ...contents);
const text = (tag: number, value: string) => der(tag, Buffer.from(value));
const utcTime = (at: number) => text(0x17, `${new Date(at).toISOString().replace(/\D/g, '').slice(2, 14)}Z`);

const oid = {
  commonName: Buffer.from('0603550403', 'hex'),
  alternativeNames: Buffer.from('0603551d11', 'hex'),
  ecdsaWithSha256: Buffer.from('06082a8648ce3d040302', 'hex'),
};

export function makeCertificate(...names: string[]): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(oid.ecdsaWithSha256);
  const name = sequence(der(0x31, sequence(oid.commonName, text(0x0c, names[0]!))));
  const alternatives = sequence(oid.alternativeNames, der(0x04, sequence(...names.map((one) => text(0x82, one)))));
  const certified = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])), algorithm,
    name, sequence(utcTime(Date.now() - day), utcTime(Date.now() + day)), name,
    publicKey.export({ format: 'der', type: 'spki' }), der(0xa3, sequence(alternatives)),
  );
  const signature = der(0x03, Buffer.from([0]), sign('sha256', certified, privateKey));
  const base64 = sequence(certified, algorithm, signature).toString('base64').replace(/(.{64})/g, '$1\n');
  return { key: privateKey.export({ format: 'pem', type: 'pkcs8' }) as string, cert: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n` };
}
