// Members of a JSON object as names and values.

import { Code } from "../parts/Code.tsx";
import { Exact } from "../parts/Text.tsx";
import type { Json } from "../hub/types.ts";

const MOST = 40;

export function Fields({ value }: { value: Json }) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return <Code text={typeof value === "string" ? value : JSON.stringify(value, null, 2)} label="Value" />;
  }
  const members = Object.entries(value).filter(([, it]) => it !== undefined && it !== null && it !== "");
  return (
    <dl class="fields">
      {members.slice(0, MOST).map(([name, member]) => (
        <div key={name}>
          <dt>
            <Exact text={name} />
          </dt>
          <dd>
            {typeof member === "string" && !member.includes("\n") && member.length < 300 ? (
              <code>
                <Exact text={member} />
              </code>
            ) : (
              <Code text={typeof member === "string" ? member : JSON.stringify(member, null, 2)} label={name} lines={20} />
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}
