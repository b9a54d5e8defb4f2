//! Reviews of tasks' changes: the stored ones, the present lines of their comments, and the task
//! that gets their message.

use super::Tasks;
use crate::error::HubError;
use a2a_hub_clock as clock;
use a2a_hub_core::review::{
    CommentAnchor, QuotedLines, Review, ReviewRefused, ReviewState, ReviewSubmission,
    anchor::{LineChange, LineRange, line_changes},
    named_lines, quote, side_name,
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::{AgentId, ContextId, QuestionId, TaskId},
    operation::{DiffSide, NewReviewComment, OutdatedReason, ReviewComment, ReviewInfo},
    question::{Question, QuestionKind},
    task::TaskState,
};
use a2a_hub_store::{HeadFilter, StorageError};
use a2a_hub_worktrees::{ChangedFile, ChangedFileList, FileVersion, WorktreeError, Worktrees};
use parking_lot::Mutex;
use serde_json::json;
use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Mode of a submodule, whose id is no content of this repository.
const SUBMODULE: u32 = 0o160_000;

/// Most tasks of a conversation that are searched for one at work in the worktree.
const MAX_SEARCHED: usize = 200;

/// One lock for each task whose review is in use: the changes of one review do not overlap.
#[derive(Clone, Default)]
pub(crate) struct ReviewLocks(Arc<Mutex<HashMap<TaskId, Arc<AsyncMutex<()>>>>>);

impl ReviewLocks {
    /// Waits until nobody else uses the reviews of a task.
    pub(crate) async fn lock(&self, task: &TaskId) -> OwnedMutexGuard<()> {
        let lock = {
            let mut all = self.0.lock();
            all.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(all.entry(task.clone()).or_default())
        };
        lock.lock_owned().await
    }
}

/// Present lines of a comment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommentStatus {
    /// The lines now; none if they are outdated, or if the comment has none.
    pub(crate) now: Option<LineRange>,
    /// Reason why the comment is outdated.
    pub(crate) outdated: Option<OutdatedReason>,
}

/// Recipient of a review.
pub(crate) enum ReviewRecipient {
    /// A new task of the same conversation in the worktree.
    NewTask {
        /// Agent that worked there last.
        agent: AgentId,
        /// Conversation of the worktree's task.
        context: ContextId,
        /// Directory that the agent works in.
        directory: String,
    },
    /// A task that asks for input.
    Question {
        /// The task.
        task: TaskId,
        /// Its conversation.
        context: ContextId,
        /// Its question.
        question: QuestionId,
    },
}

/// Reviews of one worktree by one owner.
pub(crate) struct TaskReviews<'t> {
    pub(crate) tasks: &'t Tasks,
    pub(crate) worktrees: &'t Worktrees,
    /// Task with the worktree.
    pub(crate) holder: TaskId,
    /// Identity of the caller.
    pub(crate) owner: String,
}

impl TaskReviews<'_> {
    /// The stored reviews, oldest first. One whose message was on the way when the hub was killed
    /// is sent if the message is stored, and a draft otherwise. The lock of the reviews is held.
    pub(crate) async fn settled(&self) -> Result<Vec<Review>, StorageError> {
        let storage = &self.tasks.storage;
        let mut reviews = storage.reviews(&self.holder, &self.owner).await?;
        for review in &mut reviews {
            if self.settle(review).await? {
                storage.set_review(review).await?;
            }
        }
        Ok(reviews)
    }

    /// Notes in a review whether its message arrived. True if it was on the way.
    async fn settle(&self, review: &mut Review) -> Result<bool, StorageError> {
        let ReviewState::Sending(submission) = &review.state else { return Ok(false) };
        let has_arrived = self.has_arrived(submission).await?;
        review.settle(has_arrived, clock::now());
        Ok(true)
    }

    /// True if the message of a review is stored.
    pub(crate) async fn has_arrived(
        &self,
        submission: &ReviewSubmission,
    ) -> Result<bool, StorageError> {
        let ReviewSubmission { task, is_new_task, message, .. } = submission;
        if *is_new_task {
            return Ok(self.tasks.find_head(task).await?.is_some());
        }
        let stored = self.tasks.stored(task).await?;
        let history = stored.map(|stored| stored.task.history).unwrap_or_default();
        Ok(history.iter().any(|known| known.message_id == *message))
    }

    /// Stores a review durably.
    pub(crate) async fn store(&self, review: &Review) -> Result<(), StorageError> {
        self.tasks.storage.set_review(review).await
    }

    /// Deletes a review.
    pub(crate) async fn forget(&self, review: &Review) -> Result<(), StorageError> {
        self.tasks.storage.forget_review(review).await
    }

    /// The review that was sent last. Needs no lock, and changes nothing.
    ///
    /// # Errors
    /// None was sent.
    pub(crate) async fn last_sent(&self) -> Result<Review, HubError> {
        let mut reviews = self.tasks.storage.reviews(&self.holder, &self.owner).await?;
        for review in &mut reviews {
            // Not stored: a reader holds no lock. The message of a request that runs at this time
            // would count as lost, and its review as a draft, which is then sent twice.
            self.settle(review).await?;
        }
        reviews.retain(|review| !review.is_draft());
        let task = &self.holder;
        reviews.pop().ok_or_else(|| {
            let why = format!(
                "you sent no review of task `{task}`; `a2a-hub task review add {task}` begins one, and `a2a-hub task diff {task}` \
                 shows all changes"
            );
            A2aError::new(ErrorKind::UnsupportedOperation, why)
                .with(json!({ "reason": "no_review" }))
                .into()
        })
    }

    /// Present changes of the worktree; none if the worktree is gone.
    pub(crate) async fn changes_now(&self) -> Result<Option<ChangedFileList>, HubError> {
        match self.worktrees.changed_files(self.holder.as_str(), None).await {
            Err(WorktreeError::NotFound(_)) => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// Places new comments on the present changes.
    ///
    /// # Errors
    /// A comment names no changed file, or no line of it; all of them are then refused.
    pub(crate) async fn anchor(
        &self,
        comments: Vec<NewReviewComment>,
    ) -> Result<Vec<(Option<CommentAnchor>, String)>, HubError> {
        let now = self.worktrees.changed_files(self.holder.as_str(), None).await?;
        let mut wanted = Vec::new();
        for (at, comment) in comments.iter().enumerate() {
            wanted.push(self.version_of(comment, &now).map_err(|why| refused(at, "file", why))?);
        }
        let ids: HashSet<_> = wanted.iter().flatten().map(|(_, id, _)| id.clone()).collect();
        let ids: Vec<_> = ids.into_iter().collect();
        let contents = self.worktrees.file_contents(self.holder.as_str(), &ids).await?;
        let contents: HashMap<_, _> = ids.into_iter().zip(contents).collect();
        let mut anchored = Vec::new();
        for (at, (comment, wanted)) in comments.into_iter().zip(wanted).enumerate() {
            let Some(name) = comment.file else {
                anchored.push((None, comment.text));
                continue;
            };
            let mut anchor = CommentAnchor { file: name, commit: now.commit.clone(), lines: None };
            if let Some((name, id, range)) = wanted {
                let content = contents.get(&id).map(Vec::as_slice).unwrap_or_default();
                let quoted = quote(&self.holder, &name, comment.side, content, range);
                anchor.lines = Some(quoted.map_err(|why| refused(at, "line", why.into()))?);
                anchor.file = name;
            }
            anchored.push((Some(anchor), comment.text));
        }
        Ok(anchored)
    }

    /// Name of the file, content and lines that a comment is about; none for a comment without
    /// lines.
    fn version_of(
        &self,
        comment: &NewReviewComment,
        now: &ChangedFileList,
    ) -> Result<Option<(String, String, LineRange)>, HubError> {
        let range = named_lines(comment)?;
        let Some(name) = &comment.file else { return Ok(None) };
        let is_named = |version: &FileVersion| version.has_name(name);
        let file = now.files.iter().find(|file| file.new.as_ref().is_some_and(is_named));
        let file =
            file.or_else(|| now.files.iter().find(|file| file.old.as_ref().is_some_and(is_named)));
        let Some(file) = file else {
            let task = &self.holder;
            let why = format!(
                "is no file that task `{task}` changed; `a2a-hub task diff {task} --stat` lists them"
            );
            return Err(A2aError::invalid("file", why).into());
        };
        let Some(range) = range else { return Ok(None) };
        let (version, change) = match comment.side {
            DiffSide::Old => (&file.old, "added"),
            DiffSide::New => (&file.new, "removed"),
        };
        let Some(version) = version else {
            let side = side_name(comment.side);
            return Err(ReviewRefused::NoSide { file: shown(name), side, change }.into());
        };
        if version.mode == SUBMODULE {
            return Err(ReviewRefused::Binary(shown(name)).into());
        }
        let canonical =
            file.new.as_ref().or(file.old.as_ref()).map_or_else(String::new, |it| it.name());
        Ok(Some((canonical, version.id.clone(), range)))
    }

    /// Standings of all comments of a review in the present changes; without `now`, the worktree is
    /// gone.
    pub(crate) async fn statuses(
        &self,
        review: &Review,
        now: Option<&ChangedFileList>,
    ) -> Result<Vec<CommentStatus>, HubError> {
        let mut diffs = LineDiffs { reviews: self, then: HashMap::new(), known: HashMap::new() };
        let mut statuses = Vec::new();
        for comment in &review.comments {
            statuses.push(match (&comment.anchor, now) {
                (None, _) => CommentStatus::default(),
                (Some(_), None) => lines_removed(),
                (Some(anchor), Some(now)) => diffs.status(anchor, now).await?,
            });
        }
        Ok(statuses)
    }

    /// A review for its owner.
    pub(crate) async fn info(
        &self,
        review: &Review,
        now: Option<&ChangedFileList>,
    ) -> Result<ReviewInfo, HubError> {
        let statuses = self.statuses(review, now).await?;
        let comments = review.comments.iter().zip(statuses).map(|(comment, status)| {
            let lines = comment.anchor.as_ref().and_then(|anchor| anchor.lines.as_ref());
            let moved = status.now.filter(|now| lines.is_some_and(|it| it.range != *now));
            ReviewComment {
                number: comment.number,
                file: comment.anchor.as_ref().map(|anchor| anchor.file.clone()),
                side: lines.map(|lines| lines.side),
                line: lines.map(|lines| lines.range.first),
                end_line: lines.map(|lines| lines.range.last),
                now_line: moved.map(|moved| moved.first),
                quoted: lines.map(|lines| lines.quoted.clone()).unwrap_or_default(),
                text: comment.text.clone(),
                outdated: status.outdated,
            }
        });
        let (sent_task_id, sent_at) = match &review.state {
            ReviewState::Sent { submission, at } => {
                (Some(submission.task.clone()), Some(at.clone()))
            }
            ReviewState::Draft | ReviewState::Sending(_) => (None, None),
        };
        Ok(ReviewInfo {
            review_id: review.id.clone(),
            created_at: review.created_at.clone(),
            comments: comments.collect(),
            sent_task_id,
            sent_at,
        })
    }

    /// Recipient of a review: a task that asks for input in the worktree, or a new one of the agent
    /// that worked there last.
    ///
    /// # Errors
    /// A task is at work there, or asks for something else.
    pub(crate) async fn recipient(&self) -> Result<ReviewRecipient, HubError> {
        let head = self.tasks.head(&self.holder).await?;
        let worktree = self.worktrees.find(self.holder.as_str())?;
        let is_there = |directory: Option<&String>| {
            directory.is_some_and(|it| Path::new(it).starts_with(&worktree.tree))
        };
        let of = async |live_only| {
            let context = Some(head.context.clone());
            let filter =
                HeadFilter { context, live_only, limit: MAX_SEARCHED, ..HeadFilter::default() };
            let mut heads = self.tasks.storage.heads(filter).await?;
            heads.retain(|other| other.task == head.task || is_there(other.directory.as_ref()));
            Ok::<_, StorageError>(heads.into_iter().next())
        };
        let Some(open) = of(true).await? else {
            let agent = of(false).await?.map_or_else(|| head.agent.clone(), |newest| newest.agent);
            let Some(directory) = worktree.directory.to_str().map(str::to_owned) else {
                let why = "the path of the hub's data directory is not UTF-8";
                return Err(WorktreeError::Unsupported(why.to_owned()).into());
            };
            let context = head.context;
            return Ok(ReviewRecipient::NewTask { agent, context, directory });
        };
        let task = open.task.clone();
        if open.state == TaskState::InputRequired {
            let stored = self.tasks.get(&task).await?.task;
            let question = Question::from_metadata(stored.metadata.as_ref());
            if let Some(question) = question.filter(|it| it.kind == QuestionKind::Input) {
                let context = open.context.clone();
                return Ok(ReviewRecipient::Question { task, context, question: question.id });
            }
        }
        let why = match open.state.is_interrupted() {
            true => format!(
                "task `{task}`, which works in the worktree, asks for something else; answer it first (`a2a-hub inbox`). The draft \
                 stays"
            ),
            false => format!(
                "task `{task}` is at work in the worktree; wait for its end (`a2a-hub task watch {task}`), or cancel it. The draft \
                 stays"
            ),
        };
        Err(A2aError::new(ErrorKind::UnsupportedOperation, why)
            .with(json!({ "reason": "busy", "taskId": task }))
            .into())
    }
}

/// Line diffs of one pass over the comments of a review, each computed once.
struct LineDiffs<'r, 't> {
    reviews: &'r TaskReviews<'t>,
    /// Changes at the times of the comments, by the commits of the snapshots.
    then: HashMap<String, ChangedFileList>,
    known: HashMap<(String, String), Option<Vec<LineChange>>>,
}

impl LineDiffs<'_, '_> {
    async fn status(
        &mut self,
        anchor: &CommentAnchor,
        now: &ChangedFileList,
    ) -> Result<CommentStatus, HubError> {
        let unchanged = anchor.lines.as_ref().map(|lines| lines.range);
        if anchor.commit == now.commit {
            return Ok(CommentStatus { now: unchanged, outdated: None });
        }
        if !self.then.contains_key(&anchor.commit) {
            let (worktrees, task) = (self.reviews.worktrees, self.reviews.holder.as_str());
            let then = worktrees.changed_files(task, Some(&anchor.commit)).await?;
            self.then.insert(anchor.commit.clone(), then);
        }
        let then = self.then.get(&anchor.commit).and_then(|then| file_named(then, &anchor.file));
        let Some(then) = then.cloned() else { return Ok(lines_removed()) };
        let (old, new) = (then.old.as_ref(), then.new.as_ref());
        match &anchor.lines {
            Some(QuotedLines { side: DiffSide::Old, range, .. }) => {
                let Some(old) = old else { return Ok(lines_removed()) };
                let is_same_file =
                    |file: &&ChangedFile| file.old.as_ref().is_some_and(|it| it.path == old.path);
                let file_now = now.files.iter().find(is_same_file);
                let then = self.removed(old, new, *range).await?;
                let now = match file_now {
                    Some(file) => self.removed(old, file.new.as_ref(), *range).await?,
                    None => Vec::new(),
                };
                Ok(if then == now {
                    CommentStatus { now: unchanged, outdated: None }
                } else {
                    changed()
                })
            }
            lines => {
                let Some(version) = new.or(old) else { return Ok(lines_removed()) };
                let Some(id) = id_now(&then, version, now) else {
                    // A removed file that is still removed.
                    let is_same = new.is_none() && lines.is_none();
                    return Ok(if is_same { CommentStatus::default() } else { lines_removed() });
                };
                let Some(lines) = lines else {
                    let is_same = new.is_some_and(|version| version.id == id);
                    return Ok(if is_same { CommentStatus::default() } else { changed() });
                };
                let changes = self.changes(&version.id, &id).await?;
                let moved = changes.and_then(|changes| lines.range.after(&changes));
                Ok(match moved {
                    Some(range) => CommentStatus { now: Some(range), outdated: None },
                    None => changed(),
                })
            }
        }
    }

    /// Lines of a range of the old file that are not in the new one.
    async fn removed(
        &mut self,
        old: &FileVersion,
        new: Option<&FileVersion>,
        range: LineRange,
    ) -> Result<Vec<LineRange>, HubError> {
        let Some(new) = new else { return Ok(vec![range]) };
        let changes = self.changes(&old.id, &new.id).await?;
        // Files that are too large to compare count as another text.
        Ok(changes.map_or_else(|| vec![range], |changes| range.removed_by(&changes)))
    }

    /// Line changes between two contents; none if they are too large to compare.
    async fn changes(&mut self, old: &str, new: &str) -> Result<Option<Vec<LineChange>>, HubError> {
        if old == new {
            return Ok(Some(Vec::new()));
        }
        let key = (old.to_owned(), new.to_owned());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let (worktrees, task) = (self.reviews.worktrees, self.reviews.holder.as_str());
        let diff = worktrees.line_diff(task, old, new).await?;
        let changes = diff.map(|diff| line_changes(&diff));
        self.known.insert(key, changes.clone());
        Ok(changes)
    }
}

/// Id of the present content of a file; none if it is gone.
fn id_now(then: &ChangedFile, version: &FileVersion, now: &ChangedFileList) -> Option<String> {
    let at = |side: fn(&ChangedFile) -> Option<&FileVersion>| {
        now.files.iter().find(|file| side(file).is_some_and(|it| it.path == version.path))
    };
    if let Some(file) = at(|file| file.new.as_ref()).or_else(|| at(|file| file.old.as_ref())) {
        return file.new.as_ref().map(|version| version.id.clone());
    }
    // A file that is not changed any more is that of the base.
    then.old.as_ref().filter(|old| old.path == version.path).map(|old| old.id.clone())
}

fn file_named<'l>(list: &'l ChangedFileList, name: &str) -> Option<&'l ChangedFile> {
    let has = |version: &Option<FileVersion>| version.as_ref().is_some_and(|it| it.has_name(name));
    let files = || list.files.iter();
    files().find(|file| has(&file.new)).or_else(|| files().find(|file| has(&file.old)))
}

const fn lines_removed() -> CommentStatus {
    CommentStatus { now: None, outdated: Some(OutdatedReason::Removed) }
}

const fn changed() -> CommentStatus {
    CommentStatus { now: None, outdated: Some(OutdatedReason::Changed) }
}

/// Name of a file in a sentence.
fn shown(name: &str) -> String {
    a2a_hub_core::text::plain_text::line(name, 200)
}

/// Refusal of one of several comments.
fn refused(at: usize, member: &str, why: HubError) -> HubError {
    let why = A2aError::from(why);
    if why.kind != ErrorKind::InvalidParams {
        return why.into();
    }
    match why.message.strip_prefix(&format!("`{member}`: ")) {
        Some(text) => A2aError::invalid(&format!("comments[{at}].{member}"), text).into(),
        None => A2aError::invalid(&format!("comments[{at}]"), &why.message).into(),
    }
}

impl From<ReviewRefused> for HubError {
    fn from(why: ReviewRefused) -> Self {
        Self::from(A2aError::new(ErrorKind::InvalidParams, why.to_string()))
    }
}
