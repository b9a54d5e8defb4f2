// Chooses the screen by the pairing and the address.

import { lazy } from "./lazy.tsx";
import { pairing } from "../hub/session.ts";
import { Boundary } from "./Boundary.tsx";
import { InboxScreen } from "../inbox/InboxScreen.tsx";
import { Insecure, NotPaired } from "../pair/NotPaired.tsx";
import { PairScreen } from "../pair/PairScreen.tsx";
import { Empty } from "../parts/Empty.tsx";
import { Link } from "./Link.tsx";
import { address } from "./router.ts";
import { Shell } from "./Shell.tsx";

const TasksScreen = lazy(() => import("../tasks/TasksScreen.tsx").then((it) => it.TasksScreen));
const TaskScreen = lazy(() => import("../task/TaskScreen.tsx").then((it) => it.TaskScreen));
const SendScreen = lazy(() => import("../send/SendScreen.tsx").then((it) => it.SendScreen));
const AgentsScreen = lazy(() => import("../agents/AgentsScreen.tsx").then((it) => it.AgentsScreen));

export function App() {
  if (pairing.value === "loading") return null;
  if (pairing.value === "insecure") return <Insecure />;
  if (address.value.path === "pair") return <PairScreen />;
  if (pairing.value !== "paired") return <NotPaired isRemoved={pairing.value === "removed"} />;
  return (
    <Shell>
      <Boundary key={address.value.path}>
        <Screen />
      </Boundary>
    </Shell>
  );
}

function Screen() {
  const [section = "", id] = address.value.path.split("/");
  if (section === "") return <InboxScreen />;
  if (section === "tasks" && id !== undefined) return <TaskScreen key={id} id={decode(id)} />;
  if (section === "tasks") return <TasksScreen />;
  if (section === "send") return <SendScreen />;
  if (section === "agents") return <AgentsScreen />;
  return (
    <Empty>
      <h1>There is no such page.</h1>
      <p>
        <Link to="">Go to the inbox</Link>
      </p>
    </Empty>
  );
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
