//! Logins at vendors: each person's tasks use the files of that person's login, and find those of
//! nobody else.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, artifact, get, said, state},
};
use a2a_hub_tests::{Client, message_to, tenants::Web, tenants::new_key, test_guests};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// Content of the login of ada.
const TOKEN: &str = "token-of-ada-7f3a9c";

/// A hub with people, and logins whose homes lie in the workspace of their agent.
struct Stage {
    hub: InProcessHub,
    operator: Client,
    root: PathBuf,
    _dir: TempDir,
}

impl Stage {
    /// `settings` are added to the configuration; `{root}` in them is the workspace.
    async fn new(settings: &str) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let root = dir.path().canonicalize()?;
        for made in ["logins/ada", "logins/bob", "work"] {
            fs::create_dir_all(root.join(made))?;
        }
        fs::write(root.join("logins/ada/token"), TOKEN)?;
        let logins = "[login.ada]\nagent = 'guest'\nperson = 'ada'\nhome = '{root}/logins/ada'\n";
        let config = GRANT.replace(
            "[agents.guest]\n",
            "[agents.guest]\n    workspaces = ['{root}']\n    default_login = ['dora']\n",
        );
        let config = format!("{config}\n{logins}\n{settings}");
        let config = config.replace("{root}", &root.display().to_string());
        let guests = test_guests()?;
        let builder = InProcessHub::builder().config(config).plugin("guest", &guests);
        let hub = builder.plugin("plain", &guests).start().await?;
        let operator = Client::unix(&hub);
        Ok(Self { hub, operator, root, _dir: dir })
    }

    async fn person(&self, name: &str) -> Result<Web> {
        Ok(Web::of(&self.hub, format!("Bearer {}", new_key(&self.hub, name).await?)))
    }

    /// Runs a script of the agent for this caller, in `directory`; returns the task.
    async fn run(&self, by: &Web, agent: &str, script: &str, directory: &Path) -> Result<Value> {
        let mut params = message_to(agent, &format!("sh {script}"));
        params["message"]["metadata"]["workingDirectory"] = json!(directory);
        let mut answer = by.call("/", "message/send", params).await?;
        ensure!(answer["error"].is_null(), "{answer}");
        Ok(answer["result"].take())
    }
}

const BOB: &str = "[login.bob]\nagent = 'guest'\nperson = 'bob'\nhome = '{root}/logins/bob'\n";

#[tokio::test]
async fn each_person_uses_own_login() -> Result<()> {
    let stage = Stage::new(BOB).await?;
    let work = stage.root.join("work");
    let show = "echo login=$GUEST_HOME; cat $GUEST_HOME/token; echo more > $GUEST_HOME/session";
    for (name, expected) in [
        ("ada", format!("login={}/logins/ada\n{TOKEN}\n", stage.root.display())),
        ("bob", format!("login={}/logins/bob\n", stage.root.display())),
        ("dora", "login=\n".to_owned()),
    ] {
        let task = stage.run(&stage.person(name).await?, "guest", show, &work).await?;
        assert_eq!((state(&task), artifact(&task)), ("completed", expected), "{name}: {task}");
    }
    for name in ["ada", "bob"] {
        assert_eq!(
            fs::read_to_string(stage.root.join("logins").join(name).join("session"))?,
            "more\n"
        );
    }
    Ok(())
}

/// The ways by which an agent of bob looks for the token of ada.
#[tokio::test]
async fn login_of_another_person_is_not_found() -> Result<()> {
    let stage = Stage::new(BOB).await?;
    let (root, work) = (stage.root.display().to_string(), stage.root.join("work"));
    symlink(stage.root.join("logins/ada"), work.join("link"))?;
    let bob = stage.person("bob").await?;
    let ada = stage.person("ada").await?;
    // A program of ada works meanwhile.
    let long = "touch ready; while [ ! -e done ]; do sleep 0.1; done";
    let both = async {
        let running = stage.run(&ada, "guest", long, &work);
        let looking = async {
            for _ in 0..200 {
                if work.join("ready").exists() {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            let mut found = Vec::new();
            for script in [
                "cat {root}/logins/ada/token",
                "cat ../logins/ada/token",
                "cat {root}/./logins//ada/../ada/token",
                "cat link/token",
                "ln -s {root}/logins/ada/token own && cat own",
                "ln {root}/logins/ada/token hard && cat hard",
                "cd {root}/logins/ada && cat token",
                "ls -R {root}/logins; cat {root}/logins/*/token",
                "cat $GUEST_HOME/../ada/token",
                "ln -s ../ada $GUEST_HOME/other; cat $GUEST_HOME/other/token",
                "rm -rf $GUEST_HOME/other; mv {root}/logins/ada $GUEST_HOME/moved; cat $GUEST_HOME/moved/token",
                "mv {root}/logins {root}/moved; cat {root}/moved/ada/token",
                "cat /proc/*/environ; cd /proc/self; cat */root{root}/logins/ada/token",
                "cat /proc/1/'root'{root}/logins/ada/token",
                "for p in /proc/[0-9]*; do cat $p/cwd/../logins/ada/token; done",
                "find / -name token -exec cat {} + ",
                "grep -rs token-of-ada {root} /tmp /var/tmp /dev/shm ~",
                "GUEST_HOME={root}/logins/ada; cat $GUEST_HOME/token",
                "unshare -rm sh -c 'umount -a; cat {root}/logins/ada/token'",
                "mount --bind {root}/logins/ada $GUEST_HOME; cat $GUEST_HOME/token",
                "python3 -c 'print(open(\"{root}/logins/ada/token\").read())'",
                "tar cf - {root}/logins | cat",
            ] {
                let script = script.replace("{root}", &root);
                let task = stage.run(&bob, "guest", &format!("{script} 2>&1; true"), &work).await?;
                if task.to_string().contains(TOKEN) {
                    found.push(script);
                }
            }
            fs::write(work.join("done"), "")?;
            anyhow::Ok(found)
        };
        tokio::try_join!(running, looking)
    };
    let (of_ada, found) = both.await?;
    assert_eq!(state(&of_ada), "completed", "{of_ada}");
    assert_eq!(found, [""; 0], "of these ways, some lead to the token");
    // Directories that the task names.
    let home = stage.root.join("logins/ada");
    let task = stage.run(&bob, "guest", "cat token", &home).await?;
    ensure!(said(&task).contains("holds a login"), "{task}");
    let mut params = message_to("guest", "sh cat token");
    params["message"]["metadata"]["workingDirectory"] = json!(work);
    params["message"]["metadata"]["additionalDirectories"] = json!([home]);
    let told = bob.call("/", "message/send", params).await?;
    ensure!(told.to_string().contains("holds a login"), "{told}");
    assert_eq!(fs::read_to_string(home.join("token"))?, TOKEN, "it is as it was");
    Ok(())
}

#[tokio::test]
async fn missing_login_is_auth_required() -> Result<()> {
    let stage = Stage::new("").await?;
    let work = stage.root.join("work");
    let eve = stage.person("eve").await?;
    let asked = stage.run(&eve, "guest", "echo begun", &work).await?;
    assert_eq!(state(&asked), "auth-required", "{asked}");
    ensure!(said(&asked).contains("eve has no login of `guest`"), "{asked}");
    let answer = async || {
        let mut answer = message_to("guest", "done");
        answer["message"]["taskId"] = asked["id"].clone();
        anyhow::Ok(eve.call("/", "message/send", answer).await?["result"].take())
    };
    let again = answer().await?;
    assert_eq!(state(&again), "auth-required", "nothing was changed: {again}");
    let file = stage.hub.data_dir().parent().context("no parent")?.join("config.toml");
    let config = fs::read_to_string(&file)?;
    fs::write(&file, format!("{config}\n[login.eve]\nagent = 'guest'\nperson = 'eve'\n"))?;
    stage.operator.call("hub/reload", json!({})).await?;
    let task = answer().await?;
    assert_eq!((state(&task), artifact(&task)), ("completed", "begun\n".to_owned()), "{task}");
    // The operator's own tasks need none.
    let own = stage.operator.call("message/send", message_to("guest", "sh echo own")).await?;
    assert_eq!(state(&own), "completed", "{own}");
    let kept = get(&stage.operator, task["id"].as_str().context("no id")?).await?;
    assert_eq!(state(&kept), "completed");
    Ok(())
}

/// All programs run as one user, so that one without confinement could read each login.
#[tokio::test]
async fn unconfined_programs_of_people_are_refused() -> Result<()> {
    let plain = "[agents.plain]\nconfine = false\nworkspaces = ['{root}']\ngrant.process.sh = {}\n\
                 [login.plain]\nagent = 'plain'\nperson = 'ada'\n";
    let stage = Stage::new(plain).await?;
    let work = stage.root.join("work");
    for name in ["ada", "dora"] {
        let by = stage.person(name).await?;
        let task = stage.run(&by, "plain", "cat ../logins/ada/token", &work).await?;
        if name == "ada" {
            ensure!(said(&task).contains("`agents.plain.confine = true`"), "{task}");
        } else {
            assert_eq!(state(&task), "auth-required", "{task}");
        }
        ensure!(!task.to_string().contains(TOKEN), "{task}");
    }
    Ok(())
}

/// The login's command says what to do, in the first task of the person, and gets the answer.
#[tokio::test]
async fn first_task_logs_in_by_code() -> Result<()> {
    let script = "echo 'open https://login.example/device'; echo 'code ABCD-EFGH'; read code; \
                  [ \"$code\" = 1234 ] || exit 1; echo $code > $GUEST_HOME/credentials";
    let login = format!(
        "[login.bob]\nagent = 'guest'\nperson = 'bob'\nhome = '{{root}}/logins/bob'\n\
                         command = ['sh', '-c', '''{script}''']\n"
    );
    let stage = Stage::new(&login).await?;
    let work = stage.root.join("work");
    // A program with the login could have put a link in the place of the hub's mark.
    let target = stage.root.join("target");
    fs::write(&target, "whole")?;
    symlink(&target, stage.root.join("logins/bob/.a2a-hub-login-begun"))?;
    let bob = stage.person("bob").await?;
    let asked = stage.run(&bob, "guest", "cat $GUEST_HOME/credentials", &work).await?;
    assert_eq!(fs::read_to_string(&target)?, "whole", "the link is not followed");
    assert_eq!(state(&asked), "auth-required", "{asked}");
    ensure!(said(&asked).contains("https://login.example/device\ncode ABCD-EFGH"), "{asked}");
    let answer = async |text: &str| {
        let mut answer = message_to("guest", text);
        answer["message"]["taskId"] = asked["id"].clone();
        anyhow::Ok(bob.call("/", "message/send", answer).await?["result"].take())
    };
    let failed = answer("4321").await?;
    assert_eq!(state(&failed), "auth-required", "{failed}");
    ensure!(said(&failed).contains("The login failed"), "{failed}");
    let again = answer("again").await?;
    ensure!(said(&again).contains("code ABCD-EFGH"), "{again}");
    let task = answer("1234").await?;
    assert_eq!((state(&task), artifact(&task)), ("completed", "1234\n".to_owned()), "{task}");
    let next = stage.run(&bob, "guest", "ls -A $GUEST_HOME", &work).await?;
    assert_eq!(
        (state(&next), artifact(&next)),
        ("completed", "credentials\n".to_owned()),
        "{next}"
    );
    Ok(())
}
