/** GET /.well-known/jwks.json: the public keys of plans, old ones included, for whoever wants to verify one. */
import type { Handler } from '../../../shared/contract.ts';
import type { plans } from '../../../shared/contracts/plans.ts';
import type { Deps } from '../deps.ts';

export const readJwks = ({ keys }: Pick<Deps, 'keys'>): Handler<typeof plans.readJwks> =>
  async function readJwks() {
    return {
      keys: keys.plan.map(({ kid, publicKey }) => {
        const { x = '' } = publicKey.export({ format: 'jwk' });
        return { kty: 'OKP', crv: 'Ed25519', x, kid, alg: 'EdDSA', use: 'sig' };
      }),
    };
  };
