// @ts-check
import { problemText } from "../parts/api.js";
import { confirmFirst } from "../parts/dialog.js";
import { action, field, make } from "../parts/dom.js";
import { t } from "../parts/text.js";
import { copyLink, showToast } from "../parts/toast.js";
import { accountsCard } from "./accounts.js";

/**
 * @typedef {{ allow_intranet_access: boolean, allow_remote_access: boolean, addresses: string[] }} ServerSettings
 * @typedef {{ method: "none" | "engine" | "google", login: string | null }} Account
 */

/**
 * The page Access: which networks may use the engine, the access token, and the account.
 *
 * @param {import("../parts/live-data.js").LiveContext} context
 * @returns {import("../parts/place.js").View}
 */
export function accessView({ api }) {
  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  const intranet = make("p", { id: "access-intranet-state" });
  const internet = make("p", { id: "access-internet-state" });
  const addresses = make("ul", { class: "rows" });
  const account = make("div", {});
  const token = make("section", { class: "card" });
  const switches = make("div", {});
  const accounts = accountsCard(api);

  /** @param {() => unknown} work */
  async function run(work) {
    problem.hidden = true;
    try {
      await work();
    } catch (error) {
      problem.textContent = problemText(error);
      problem.hidden = false;
    }
  }

  /** @type {(method: string, value: boolean, done: string) => Promise<void>} */
  const set = (method, value, done) =>
    run(async () => {
      await api.call(method, { value });
      showToast(done);
      await show();
    });

  const allowInternet = () =>
    confirmFirst(
      t("Allow access from the Internet?"),
      t(
        "Anyone who finds this address can then watch through this engine, use its connection and see the playlist. Allow it only behind a proxy or a VPN of your own.",
      ),
      t("Allow"),
      async () => {
        await api.call("set_allow_remote_access", { value: true });
        showToast(t("The Internet is now allowed"));
        await show();
      },
    );
  const allowNetwork = action(t("Allow the network"), () =>
    set("set_allow_intranet_access", true, t("Devices on the same network are now allowed")),
  );
  const blockNetwork = action(t("Block the network"), () =>
    set("set_allow_intranet_access", false, t("Devices on the same network are now blocked")),
  );
  const openInternet = action(t("Allow the Internet…"), allowInternet, "danger");
  const blockInternet = action(t("Block the Internet"), () =>
    set("set_allow_remote_access", false, t("The Internet is now blocked")),
  );
  switches.append(
    make("div", { id: "access-intranet", class: "buttons" }, allowNetwork, blockNetwork),
    internet,
    make("div", { id: "access-internet", class: "buttons" }, openInternet, blockInternet),
  );

  async function show() {
    const server = /** @type {ServerSettings} */ (await api.call("get_server_settings"));
    intranet.textContent = server.allow_intranet_access
      ? t("Devices on the same network are allowed: they can watch, and change things with the access token.")
      : t("Devices on the same network are blocked.");
    internet.textContent = server.allow_remote_access
      ? t("The Internet is allowed: anyone who finds this address can use the engine.")
      : t("The Internet is blocked.");
    addresses.replaceChildren(
      ...server.addresses.map((url) => make("li", { class: "row-item" }, make("a", { href: url }, url))),
    );
    allowNetwork.hidden = server.allow_intranet_access;
    blockNetwork.hidden = !server.allow_intranet_access;
    openInternet.hidden = server.allow_remote_access;
    blockInternet.hidden = !server.allow_remote_access;
    // Only the engine's own computer may change access.
    switches.hidden = !api.isLocal;
    accounts.element.hidden = !api.isLocal;
    if (api.isLocal) await accounts.show();
    showToken();
    await showAccount();
  }

  function showToken() {
    const forget = action(t("Remove the access token from this browser"), async () => {
      await api.forgetToken();
      location.reload();
    });
    token.replaceChildren(
      make("h2", {}, t("Access token")),
      make(
        "p",
        {},
        t(
          "It keeps guests on your network from changing the engine. To use the Control room on another device, copy it here, open this page there, and paste it.",
        ),
      ),
      make(
        "div",
        { class: "buttons" },
        api.isLocal ? action(t("Copy the access token"), () => copyLink(api.token)) : forget,
        api.isLocal ? action(t("Renew the access token…"), askToRenew) : undefined,
      ),
    );
  }

  function askToRenew() {
    confirmFirst(
      t("Renew the access token?"),
      t("Other devices and programs can then change nothing until they get the new token."),
      t("Renew"),
      async () => {
        await api.call("renew_api_access_token");
        await api.enter();
        showToast(t("The access token is renewed"));
      },
    );
  }

  async function showAccount() {
    const { method, login } = /** @type {Account} */ (await api.call("check_auth"));
    if (method === "none") {
      const email = make("input", { type: "email", autocomplete: "username", required: true });
      const password = make("input", { type: "password", autocomplete: "current-password", required: true });
      const form = make(
        "form",
        { class: "fields" },
        field(t("Email address"), email),
        field(t("Password"), password),
        make("div", { class: "buttons" }, make("button", { type: "submit" }, t("Sign in"))),
      );
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        void run(async () => {
          await api.call("sign_in", { email: email.value, password: password.value });
          await showAccount();
        });
      });
      account.replaceChildren(make("p", {}, t("No account is signed in.")), form);
      return;
    }
    const signOut = action(t("Sign out"), () =>
      run(async () => {
        await api.call("sign_out");
        await showAccount();
      }),
    );
    const [before, after] = t("Signed in as {name}.").split("{name}");
    account.replaceChildren(
      make("p", {}, before, make("bdi", {}, login ?? method), after),
      make("div", { class: "buttons" }, signOut),
    );
  }

  return {
    element: make(
      "div",
      { class: "page" },
      problem,
      make("section", { class: "card" }, make("h2", {}, t("Networks")), intranet, switches, addresses),
      token,
      accounts.element,
      make("section", { class: "card" }, make("h2", {}, t("Sign-in of this engine")), account),
    ),
    show: () => run(show),
  };
}
