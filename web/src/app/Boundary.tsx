// Catches a failure of a screen, so that the frame stays usable and says what happened.

import { Component, type ComponentChildren } from "preact";

interface State {
  error: string | undefined;
}

export class Boundary extends Component<{ children: ComponentChildren }, State> {
  override state: State = { error: undefined };

  override componentDidCatch(error: unknown): void {
    this.setState({ error: error instanceof Error ? error.message : String(error) });
  }

  override render() {
    if (this.state.error === undefined) return <>{this.props.children}</>;
    return (
      <div class="failure" role="alert">
        <p>This screen failed: {this.state.error}. What you typed is kept.</p>
        <button type="button" class="small-button" onClick={() => location.reload()}>
          Load the page again
        </button>
      </div>
    );
  }
}
