import { createApp } from "../../../routes/app.ts";
import { type Random, randomBelow } from "../../../src/base/random.ts";
import { createAccessControl } from "../../../src/library/access-control.ts";
import type { AccessControl } from "../../../src/library/contract.ts";
import { fakeHouse } from "../../engine/fake-house.ts";
import { fakeLibrary } from "../../library/fake-library.ts";
import { MapStore } from "../../library/map-store.ts";
import {
  ADDRESS_CLASSES,
  ALLOWED_HOSTS,
  HOSTS,
  LISTED_ORIGIN,
  ORIGINS,
  type OriginForm,
  OWN_NAMES,
  SITES,
  SWITCHES,
  TARGETS,
  TOKENS,
  VERBS,
  type Verb,
} from "./dimensions.ts";
import { expectedReaders, expectedVerdict, type Facts, type Verdict } from "./oracle.ts";

const ORIGIN_FORMS = Object.keys(ORIGINS) as OriginForm[];

/** How long each dimension is, in the order of the indexes of a case. */
const SIZES = [
  TARGETS.length,
  ADDRESS_CLASSES.length,
  TOKENS.length,
  ORIGIN_FORMS.length,
  SITES.length,
  HOSTS.length,
  SWITCHES.length,
];

/** How many cases there are for one verb. */
export const CASE_COUNT = SIZES.reduce((product, size) => product * size, 1);

type App = ReturnType<typeof createApp>;
type Tokens = Readonly<Record<(typeof TOKENS)[number], string | undefined>>;

/** Asks the real routes, on an engine and a library in memory. */
export class Matrix {
  readonly #apps: readonly App[];
  readonly #tokens: Tokens;

  private constructor(apps: readonly App[], tokens: Tokens) {
    this.#apps = apps;
    this.#tokens = tokens;
  }

  static async open(): Promise<Matrix> {
    let seed = 0;
    const randomBytes = (length: number) => new Uint8Array(length).fill(++seed);
    const access = await createAccessControl({ store: new MapStore(), randomBytes });
    const revoked = await access.token();
    const good = await access.renewToken();
    return new Matrix(
      SWITCHES.map((switches) => appWith(access, switches)),
      { none: undefined, wrong: "0".repeat(64), revoked, good },
    );
  }

  /** Asks one case; resolves to what was wrong about the answer, or to undefined where nothing was. */
  async check(index: number, verb: Verb): Promise<string | undefined> {
    const [target, address, token, origin, site, host, switches] = caseOf(index);
    const facts: Facts = {
      kind: target.kind,
      where: address.where,
      isOurHost: host.isOurs,
      token,
      origin,
      site,
      switches,
    };
    const hostText = host.text(address.written);
    const request = requestOf(verb, target, {
      host: hostText,
      origin: ORIGINS[origin](hostText),
      site,
      token: this.#tokens[token],
    });
    const answer = await this.#apps[SWITCHES.indexOf(switches)]!.fetch(request, { origin: address.origin });
    const expected = expectedVerdict(facts);
    // An answer without a body tells no more than whether the gate let it pass.
    const isMute = verb === "HEAD";
    const verdict = isMute ? headVerdict(answer, expected) : await verdictOf(answer);
    const readers = expectedReaders(facts, expected);
    const allowed = answer.headers.get("access-control-allow-origin") ?? undefined;
    const wanted = readers === "this" ? LISTED_ORIGIN : readers;
    const isSafe = answer.headers.get("x-content-type-options") === "nosniff";
    if (verdict === expected && allowed === wanted && isSafe) return undefined;
    return `${verb} ${target.name} from ${address.name}, token ${token}, Origin ${origin}, Sec-Fetch-Site ${site}, Host: ${host.name}, ${JSON.stringify(switches)}: expected ${expected} (readers ${wanted}), got ${verdict} (${allowed}, ${answer.status})`;
  }
}

type Case = readonly [
  (typeof TARGETS)[number],
  (typeof ADDRESS_CLASSES)[number],
  (typeof TOKENS)[number],
  OriginForm,
  (typeof SITES)[number],
  (typeof HOSTS)[number],
  (typeof SWITCHES)[number],
];

function caseOf(index: number): Case {
  const at: number[] = [];
  let rest = index;
  for (const size of SIZES) {
    at.push(rest % size);
    rest = Math.floor(rest / size);
  }
  const [target, address, token, origin, site, host, switches] = at as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return [
    TARGETS[target]!,
    ADDRESS_CLASSES[address]!,
    TOKENS[token]!,
    ORIGIN_FORMS[origin]!,
    SITES[site]!,
    HOSTS[host]!,
    SWITCHES[switches]!,
  ];
}

/** A case and a verb by chance; three of four with a Host that is ours, or the rest would hardly be looked at. */
export function randomCase(random: Random): [index: number, verb: Verb] {
  for (;;) {
    const index = randomBelow(random, CASE_COUNT);
    if (caseOf(index)[5].isOurs || random() < 0.2) return [index, VERBS[randomBelow(random, VERBS.length)]!];
  }
}

function appWith(access: AccessControl, switches: (typeof SWITCHES)[number]) {
  const { engine } = fakeHouse();
  const kept: AccessControl = {
    ...switches,
    setAllowsIntranet: async () => {},
    setAllowsRemote: async () => {},
    token: () => access.token(),
    isToken: (token) => access.isToken(token),
    renewToken: () => access.renewToken(),
  };
  return createApp({
    engine,
    version: "1.2.3",
    library: { ...fakeLibrary(), access: kept },
    allowedHosts: ALLOWED_HOSTS,
    access: { ownNames: OWN_NAMES, allowedOrigins: [LISTED_ORIGIN] },
  });
}

function requestOf(
  verb: Verb,
  target: Case[0],
  said: { host: string; origin: string | undefined; site: Case[4]; token: string | undefined },
): Request {
  const headers = new Headers({ host: said.host });
  if (said.origin !== undefined) headers.set("origin", said.origin);
  if (said.site !== "absent") headers.set("sec-fetch-site", said.site);
  const [path, query = ""] = target.path.split("?") as [string, string?];
  const token = said.token === undefined ? "" : `&token=${said.token}`;
  const all = `${query}${token}`;
  const base = "http://127.0.0.1:6878";
  // Only `/server/api` reads forms.
  if (verb !== "FORM" || path !== "/server/api")
    return new Request(`${base}${path}?${all}`, { method: verb === "FORM" ? "POST" : verb, headers });
  headers.set("content-type", "application/x-www-form-urlencoded");
  return new Request(`${base}${path}`, { method: "POST", headers, body: all });
}

const TEXTS: readonly (readonly [RegExp, Verdict])[] = [
  [/"error": "access denied"/, "denied"],
  [/"error": "access token required/, "token_required"],
  [/"error": "wrong access token/, "wrong_token"],
];

async function verdictOf(answer: Response): Promise<Verdict> {
  const text = await answer.text();
  if (answer.status === 421) return "misdirected";
  if (answer.status === 403 && text === "access denied\n") return "denied";
  return TEXTS.find(([pattern]) => pattern.test(text))?.[1] ?? "allowed";
}

function headVerdict(answer: Response, expected: Verdict): Verdict {
  if (answer.status === 421) return "misdirected";
  if (answer.status === 403) return "denied";
  return expected === "misdirected" ? "allowed" : expected;
}
