/** The access switches and the access token (interface: Authentication). */
export interface AccessControl {
  readonly allowsIntranet: boolean;
  readonly allowsRemote: boolean;
  setAllowsIntranet(value: boolean): Promise<void>;
  setAllowsRemote(value: boolean): Promise<void>;
  /** Calls `switched` after each change of a switch. */
  onSwitched(switched: () => void): void;
  /** The access token, 64 hex digits; generated on first use. */
  token(): Promise<string>;
  /** Compares in constant time. */
  isToken(token: string): Promise<boolean>;
  /** Generates a new token and revokes the old one. */
  renewToken(): Promise<string>;
}

/** The result of `check_auth`. */
export interface AuthStatus {
  readonly method: "none" | "engine" | "google";
  readonly login: string | null;
  /** A signed token (JWT) while a user is signed in. */
  readonly authToken: string | null;
}

/** What an account may play with the Xtream Codes API. */
export interface AccountLimits {
  /** Streams at the same time; 0: no limit. */
  readonly maxStreams: number;
  /** Categories, subcategories or tags of the channels and films; empty: all. */
  readonly groups: readonly string[];
}

/** Local accounts and the current session. */
export interface Accounts {
  /** Resolves to true if the sign-in succeeded. `client` is the client's address, for the limit on attempts. */
  signInByPassword(email: string, password: string, client: string): Promise<boolean>;
  signInByGoogle(idToken: string, client: string): Promise<boolean>;
  /** Resolves to true if the password belongs to the account, without signing in; cheap if the same one was right before. */
  isPassword(email: string, password: string, client: string): Promise<boolean>;
  signOut(): Promise<void>;
  status(): Promise<AuthStatus>;
  /** Rejects with `bad_parameter` if the account exists or the password is too short. */
  add(email: string, password: string): Promise<void>;
  setPassword(email: string, password: string): Promise<void>;
  /** Replaces the limits of an account. Rejects with `bad_parameter` if they are invalid or the account does not exist. */
  setLimits(email: string, limits: AccountLimits): Promise<void>;
  /** Returns the limits of an account; those of an unknown one allow everything. */
  limits(email: string): Promise<AccountLimits>;
  remove(email: string): Promise<void>;
  list(): Promise<readonly string[]>;
}
