// @ts-check
import { confirmFirst, openForm } from "../parts/dialog.js";
import { action, field, linesInput, linesOf, make } from "../parts/dom.js";
import { listRow } from "../parts/rows.js";
import { t } from "../parts/text.js";
import { showToast } from "../parts/toast.js";

/** @typedef {{ email: string, max_streams: number, groups: string[] }} Account */

/**
 * The card Accounts: those of the television apps and of sign-in. Only the engine's own computer may change them.
 *
 * @param {import("../parts/api.js").EngineApi} api
 */
export function accountsCard(api) {
  const list = make("ul", { class: "rows" });

  async function show() {
    const { accounts } = /** @type {{ accounts: Account[] }} */ (await api.call("account_list"));
    list.replaceChildren(...accounts.map(row));
  }

  /** @param {Account} account */
  function row(account) {
    const { email, max_streams: streams, groups } = account;
    const limits = [
      streams === 0 ? t("any number of streams") : t("streams at the same time: {streams}", { streams }),
      groups.length === 0 ? t("all groups") : groups.join(", "),
    ];
    return listRow(
      email,
      limits,
      make(
        "span",
        { class: "buttons" },
        action(t("Limits…"), () => changeLimits(account)),
        action(t("Password…"), () => changePassword(email)),
        action(t("Remove…"), () => remove(email), "danger"),
      ),
    );
  }

  /**
   * @param {string} done
   * @param {string} method
   * @param {import("../parts/api.js").Parameters} parameters
   */
  async function change(done, method, parameters) {
    await api.call(method, parameters);
    showToast(done);
    await show();
  }

  function add() {
    const email = make("input", { type: "email", autocomplete: "off", required: true });
    const password = newPassword();
    openForm(
      t("Add an account"),
      [field(t("Email address"), email), field(t("Password"), password)],
      t("Add"),
      () => change(t("Account added"), "account_add", { email: email.value, password: password.value }),
    );
  }

  /** @param {string} email */
  function changePassword(email) {
    const password = newPassword();
    openForm(email, [field(t("New password"), password)], t("Save"), () =>
      change(t("Password changed"), "account_set_password", { email, password: password.value }),
    );
  }

  /** @param {Account} account */
  function changeLimits({ email, max_streams: present, groups: allowed }) {
    const streams = make("input", { type: "number", min: 0, max: 9999, value: present });
    const groups = linesInput(allowed);
    openForm(
      email,
      [
        field(t("Streams at the same time"), streams, t("0: any number")),
        field(t("Groups"), groups, t("Groups of the playlist, one on each line. Empty: all")),
      ],
      t("Save"),
      () =>
        change(t("Limits changed"), "account_set_limits", {
          email,
          max_streams: streams.value,
          group: linesOf(groups),
        }),
    );
  }

  /** @param {string} email */
  function remove(email) {
    confirmFirst(
      t("Remove the account {email}?", { email }),
      t("Apps that use it can no longer sign in. The playlist stays."),
      t("Remove"),
      () => change(t("Account removed"), "account_remove", { email }),
    );
  }

  return {
    element: make(
      "section",
      { class: "card" },
      make("h2", {}, t("Accounts")),
      make(
        "p",
        {},
        t(
          "Television apps (Xtream Codes) and programs sign in with an account. An account does not open the Control room.",
        ),
      ),
      list,
      make("div", { class: "buttons" }, action(t("Add an account…"), add)),
    ),
    show,
  };
}

function newPassword() {
  return make("input", { type: "password", autocomplete: "new-password", required: true });
}
