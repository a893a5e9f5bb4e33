import type { OriginForm, SITES, SWITCHES, TargetKind, TokenForm, Where } from "./dimensions.ts";

/** The decision on a request. */
export type Decision = "misdirected" | "denied" | "token_required" | "wrong_token" | "allowed";

type Page = "own" | "listed" | "foreign";

/** The properties of a request that the interface uses to decide. */
export interface Facts {
  readonly kind: TargetKind;
  readonly where: Where;
  readonly isOwnHost: boolean;
  readonly token: TokenForm;
  readonly origin: OriginForm;
  readonly site: (typeof SITES)[number];
  readonly switches: (typeof SWITCHES)[number];
}

/** By Origin (rows) and Sec-Fetch-Site (absent, none, same-origin, same-site, cross-site): O own, L listed, F foreign. */
const PAGES: Readonly<Record<OriginForm, string>> = {
  none: "OOOFF",
  own: "OOOFF",
  "own, another port": "FFFFF",
  foreign: "FFFFF",
  null: "FFFFF",
  listed: "LLLLL",
  two: "FFFFF",
};
const COLUMNS: Readonly<Record<Facts["site"], number>> = {
  absent: 0,
  none: 1,
  "same-origin": 2,
  "same-site": 3,
  "cross-site": 4,
};
const PAGE_NAMES: Readonly<Record<string, Page>> = { O: "own", L: "listed", F: "foreign" };

type Rule = readonly [where: Where | "*", page: Page | "*", token: TokenForm | "*", decision: Decision];

/** The decision by token, if the method needs one. */
const BY_TOKEN: readonly Rule[] = [
  ["*", "*", "good", "allowed"],
  ["*", "*", "none", "token_required"],
  ["*", "*", "*", "wrong_token"],
];

/** Interface: Authentication 1, 2, 4 and the tables; the first matching rule applies. */
const RULES: Readonly<Record<TargetKind, readonly Rule[]>> = {
  key: [
    ["local", "own", "*", "allowed"],
    ["*", "*", "*", "denied"],
  ],
  switch: [
    ["intranet", "*", "*", "denied"],
    ["internet", "*", "*", "denied"],
    ["*", "foreign", "*", "denied"],
    ...BY_TOKEN,
  ],
  private: [["*", "foreign", "*", "denied"], ...BY_TOKEN],
  closed: [["*", "own", "*", "allowed"], ["*", "foreign", "*", "denied"], ...BY_TOKEN],
  open: [["*", "*", "*", "allowed"]],
  media: [["*", "*", "*", "allowed"]],
  own: [
    ["*", "own", "*", "allowed"],
    ["*", "*", "*", "denied"],
  ],
  static: [["*", "*", "*", "allowed"]],
};

function pageOf({ origin, site }: Facts): Page {
  return PAGE_NAMES[PAGES[origin][COLUMNS[site]]!]!;
}

/** Returns the decision that the interface requires. */
export function expectedDecision(facts: Facts): Decision {
  if (!facts.isOwnHost) return "misdirected";
  const isIn = {
    local: true,
    intranet: facts.switches.allowsIntranet,
    internet: facts.switches.allowsRemote,
  }[facts.where];
  if (!isIn) return "denied";
  const page = pageOf(facts);
  const fits = (wanted: string, got: string) => wanted === "*" || wanted === got;
  return RULES[facts.kind].find(
    ([where, from, token]) => fits(where, facts.where) && fits(from, page) && fits(token, facts.token),
  )![3];
}

/** Returns which pages may read the response: `*`, the calling page, or none. A refusal may be read by the page that it
 * refuses. */
export function expectedReaders(facts: Facts, decision: Decision): "*" | "this" | undefined {
  if (decision === "misdirected") return undefined;
  if (decision === "denied") return facts.origin !== "none" && pageOf(facts) !== "own" ? "*" : undefined;
  if (facts.kind === "media" || facts.kind === "open") return "*";
  const isMethod = ["switch", "private", "closed"].includes(facts.kind);
  return isMethod && pageOf(facts) === "listed" ? "this" : undefined;
}
