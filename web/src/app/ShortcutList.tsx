// Dialog with the shortcuts in force, and the switch that turns them off.

import { Dialog } from "../parts/Dialog.tsx";
import { groups, setShortcutsEnabled, shortcutsEnabled } from "./keys.ts";

export function ShortcutList({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <div class="shortcut-groups">
        {[...groups.value].reverse().map((group, at) => (
          <section key={at}>
            <h3>{group.title}</h3>
            <dl class="shortcuts">
              {group.shortcuts
                .filter((it) => it.text !== undefined)
                .map((it) => (
                  <div key={it.key}>
                    <dt>
                      {it.key.split(" ").map((key) => (
                        <kbd key={key}>{key}</kbd>
                      ))}
                    </dt>
                    <dd>{it.text}</dd>
                  </div>
                ))}
            </dl>
          </section>
        ))}
        <section>
          <h3>In a text field</h3>
          <dl class="shortcuts">
            <div>
              <dt>
                <kbd>Ctrl</kbd>
                <kbd>Enter</kbd>
              </dt>
              <dd>Send</dd>
            </div>
            <div>
              <dt>
                <kbd>Esc</kbd>
              </dt>
              <dd>Leave the field</dd>
            </div>
          </dl>
        </section>
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={shortcutsEnabled.value}
          onChange={(event) => setShortcutsEnabled(event.currentTarget.checked)}
        />
        Single keys work as shortcuts
      </label>
    </Dialog>
  );
}
