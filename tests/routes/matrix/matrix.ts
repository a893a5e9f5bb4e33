import { createApp } from "../../../routes/app.ts";
import { createAccessControl } from "../../../src/accounts/access-control.ts";
import type { AccessControl } from "../../../src/accounts/account-contract.ts";
import { type Random, randomBelow } from "../../../src/base/random.ts";
import { createMediaServer } from "../../../src/devices/media-server.ts";
import { fakeEngine } from "../../engine/fake-engine.ts";
import { fakeLibrary } from "../../library/fake-library.ts";
import { MapStore } from "../../library/map-store.ts";
import { FakeCatchUp } from "../fake-catch-up.ts";
import { fakeRecordings } from "../fake-recordings.ts";
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
import { type Decision, expectedDecision, expectedReaders, type Facts } from "./oracle.ts";

const ORIGIN_FORMS = Object.keys(ORIGINS) as OriginForm[];

/** The size of each dimension, in the order of the indexes of a case. */
const SIZES = [
  TARGETS.length,
  ADDRESS_CLASSES.length,
  TOKENS.length,
  ORIGIN_FORMS.length,
  SITES.length,
  HOSTS.length,
  SWITCHES.length,
];

/** The number of cases for each verb. */
export const CASE_COUNT = SIZES.reduce((product, size) => product * size, 1);

type App = ReturnType<typeof createApp>;
type Tokens = Readonly<Record<(typeof TOKENS)[number], string | undefined>>;

/** Sends requests to the real routes, on an engine and a library in memory. */
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

  /** Checks a case. Resolves to a description of a wrong response, or to undefined if it is correct. */
  async check(index: number, verb: Verb): Promise<string | undefined> {
    const [target, address, token, origin, site, host, switches] = caseOf(index);
    const facts: Facts = {
      kind: target.kind,
      where: address.where,
      isOwnHost: host.isOwn,
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
    const expected = expectedDecision(facts);
    // A response without a body shows only whether the access middleware passed the request.
    const hasNoBody = verb === "HEAD";
    const decision = hasNoBody ? headDecision(answer, expected) : await decisionOf(answer);
    const readers = expectedReaders(facts, expected);
    const allowed = answer.headers.get("access-control-allow-origin") ?? undefined;
    const wanted = readers === "this" ? LISTED_ORIGIN : readers;
    const isSafe = answer.headers.get("x-content-type-options") === "nosniff";
    if (decision === expected && allowed === wanted && isSafe) return undefined;
    return `${verb} ${target.name} from ${address.name}, token ${token}, Origin ${origin}, Sec-Fetch-Site ${site}, Host: ${host.name}, ${JSON.stringify(switches)}: expected ${expected} (readers ${wanted}), got ${decision} (${allowed}, ${answer.status})`;
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

/** Returns a random case and verb. Most have a known Host, because an unknown one is refused before anything else is checked. */
export function randomCase(random: Random): [index: number, verb: Verb] {
  for (;;) {
    const index = randomBelow(random, CASE_COUNT);
    if (caseOf(index)[5].isOwn || random() < 0.2) return [index, VERBS[randomBelow(random, VERBS.length)]!];
  }
}

function appWith(access: AccessControl, switches: (typeof SWITCHES)[number]) {
  const { engine } = fakeEngine();
  const accessControl: AccessControl = {
    ...switches,
    setAllowsIntranet: async () => {},
    setAllowsRemote: async () => {},
    onSwitched: () => {},
    token: () => access.token(),
    isToken: (token) => access.isToken(token),
    renewToken: () => access.renewToken(),
  };
  return createApp({
    engine,
    version: "1.2.3",
    library: { ...fakeLibrary(), access: accessControl },
    allowedHosts: ALLOWED_HOSTS,
    access: { ownNames: OWN_NAMES, allowedOrigins: [LISTED_ORIGIN] },
    ...{ tunerId: "1012345A", servesXtream: true, catchUp: new FakeCatchUp() },
    recordings: fakeRecordings().recordings,
    mediaServer: createMediaServer({ udn: "uuid:1", name: "Sluice", version: "1" }, 1),
  });
}

function requestOf(
  verb: Verb,
  target: Case[0],
  options: { host: string; origin: string | undefined; site: Case[4]; token: string | undefined },
): Request {
  const headers = new Headers({ host: options.host });
  if (options.origin !== undefined) headers.set("origin", options.origin);
  if (options.site !== "absent") headers.set("sec-fetch-site", options.site);
  const [path, query = ""] = target.path.split("?") as [string, string?];
  const token = options.token === undefined ? "" : `&token=${options.token}`;
  const all = `${query}${token}`;
  const base = "http://127.0.0.1:6878";
  // Only `/server/api` accepts forms.
  if (verb !== "FORM" || path !== "/server/api")
    return new Request(`${base}${path}?${all}`, { method: verb === "FORM" ? "POST" : verb, headers });
  headers.set("content-type", "application/x-www-form-urlencoded");
  return new Request(`${base}${path}`, { method: "POST", headers, body: all });
}

const TEXTS: readonly (readonly [RegExp, Decision])[] = [
  [/"error": "access denied"/, "denied"],
  [/"error": "access token required/, "token_required"],
  [/"error": "wrong access token/, "wrong_token"],
];

async function decisionOf(answer: Response): Promise<Decision> {
  const text = await answer.text();
  if (answer.status === 421) return "misdirected";
  if (answer.status === 403 && text === "access denied\n") return "denied";
  return TEXTS.find(([pattern]) => pattern.test(text))?.[1] ?? "allowed";
}

const UNKNOWN_SESSION_LENGTH = String("unknown playback session id\n".length);

function headDecision(answer: Response, expected: Decision): Decision {
  if (answer.status === 421) return "misdirected";
  // An unknown session answers 403, too.
  if (answer.status === 403 && answer.headers.get("content-length") !== UNKNOWN_SESSION_LENGTH)
    return "denied";
  return expected === "misdirected" ? "allowed" : expected;
}
