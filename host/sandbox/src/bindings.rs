//! The contract of `wit/`, as Rust: made by wasmtime's macro, named nowhere else but here.

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "plugin",
    imports: {
        "a2a:hub/settings": trappable,
        "a2a:hub/tasks.cancelled": trappable,
        "a2a:hub/tasks.extensions": trappable,
        "a2a:hub/tasks.accepted-output-modes": trappable,
        default: async | trappable,
    },
    exports: { default: async },
    with: {
        "a2a:hub/process.child": crate::resources::Child,
        "a2a:hub/http.exchange": crate::resources::Exchange,
        "a2a:hub/tasks.question": crate::resources::Question,
        "a2a:hub/delegate.call": crate::resources::Delegated,
        "a2a:hub/delegate.options": crate::resources::CallOptions,
        "a2a:hub/steps.step": crate::resources::Step,
    },
});
