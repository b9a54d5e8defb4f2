//! Additional directories of a child: those of its parent at most.

use super::*;

/// Additional directories of a child whose parent works in `/w` and `/more`.
async fn of_child(directory: Option<&str>, named: Option<Value>) -> Result<Value, String> {
    of_child_in(["/w", "/more"], directory, named).await
}

/// Additional directories of a child, or why it was refused. The parent works in these directories;
/// the call names this directory, and its message these additional ones.
async fn of_child_in(
    [own, more]: [&str; 2],
    directory: Option<&str>,
    named: Option<Value>,
) -> Result<Value, String> {
    let (stand, directory) = (Stand::new(), directory.map(str::to_owned));
    let fake = Fake::new(move |stage: Stage| {
        let (working_directory, named) = (directory.clone(), named.clone());
        async move {
            if stage.text() != "narrow" {
                return follow_script(stage).await;
            }
            let mut message = Message::text(Role::User, json!({"end": "done"}).to_string());
            message.metadata = named
                .map(|named| Metadata::from_iter([("additionalDirectories".to_owned(), named)]));
            let call = ChildRequest { working_directory, ..ChildRequest::new("b", message) };
            match stage.outcome_of(call).await {
                Ok(ended) => completed(&told(&ended)),
                Err(why) => completed(&why.to_string()),
            }
        }
    });
    let agents = agents_of(&stand, &config(), &fake);
    let mut message = Message::text(Role::User, "narrow");
    let facts = json!({ "workingDirectory": own, "additionalDirectories": [more] });
    message.metadata = facts.as_object().cloned();
    let root = stand.submit_message(agents.named("a"), message).await;
    let said = said(&stand.until(&root, TaskState::Completed).await);
    if said != "done" {
        return Err(said);
    }
    let child = stand.only_child(&root).await.id;
    let heard = stand.until(&child, TaskState::Completed).await.history.remove(0);
    let facts = json!(heard.metadata);
    Ok(facts["additionalDirectories"].clone())
}

/// A program that works in the directory could have made the link.
#[tokio::test]
async fn child_follows_no_link_out() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    std::os::unix::fs::symlink("/", root.join("link")).unwrap();
    let place = root.to_str().unwrap();
    let named = |name: &str| Some(json!([root.join(name)]));
    let of_child = |name: &str| of_child_in([place, place], None, named(name));
    assert_eq!(of_child("real").await, Ok(named("real").unwrap()));
    let why = of_child("link").await.unwrap_err();
    assert!(why.contains("it leads to `/`"), "{why}");
    let [real, out] = ["real", "link/etc"].map(|name| root.join(name).display().to_string());
    assert_eq!(of_child_in([place, place], Some(&real), None).await, Ok(Value::Null));
    let why = of_child_in([place, place], Some(&out), None).await.unwrap_err();
    assert!(why.contains("it works in the directory of this task"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn child_gets_no_further_directories() {
    let named = |paths: &[&str]| Some(json!(paths));
    assert_eq!(of_child(None, None).await, Ok(json!(["/more"])), "it inherits them");
    assert_eq!(of_child(Some("/w/in"), None).await, Ok(Value::Null), "it works in one place");
    let within = ["/more/in", "/w/in"];
    assert_eq!(of_child(Some("/w/in"), named(&within)).await, Ok(json!(within)));
    assert_eq!(of_child(None, named(&[])).await, Ok(Value::Null));
    for outside in ["more", "/", "/morel", "/more/../w2", "/elsewhere"] {
        let why = of_child(None, named(&["/more", outside])).await.unwrap_err();
        assert!(why.contains(&format!("`{outside}`")), "{why}");
    }
    for odd in [json!("/more"), json!([7]), json!(vec!["/more"; 101])] {
        let why = of_child(None, Some(odd)).await.unwrap_err();
        assert!(why.contains("must be an array of at most 100 absolute paths"), "{why}");
    }
}
