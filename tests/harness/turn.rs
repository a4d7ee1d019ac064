//! One turn of a conversation, write by write.

use mongodb::bson::{Bson, Document, doc};

use super::librechat::LibreChat;
use super::{Agent, TestDb, User};

/// A turn that LibreChat is about to write. Every write is a step of its own, so that a test may
/// leave steps out, change their order and put anything between them.
#[derive(Clone)]
pub struct Turn {
    librechat: LibreChat,
    /// The conversation.
    pub conversation: String,
    /// The owner, as the documents hold it.
    pub user: String,
    /// U: the user's message.
    pub user_message: String,
    /// R: the response.
    pub response: String,
    /// The message that U answers, none in the first turn.
    pub parent: Option<String>,
    /// The agent that the client asked for.
    pub agent: String,
    /// Whether saveConvo appends the ids of messages (`appendMessageIds`) or reads them all.
    pub append: bool,
    /// Whether the chat is a temporary one.
    pub temporary: bool,
    /// Further fields that the client sends, such as `spec`.
    pub preset: Document,
}

impl Turn {
    /// The first turn of a new conversation.
    pub fn first(librechat: &LibreChat, user: &User, agent: &Agent) -> Self {
        Self {
            librechat: librechat.clone(),
            conversation: uuid(),
            user: user.hex(),
            user_message: uuid(),
            response: uuid(),
            parent: None,
            agent: agent.id.clone(),
            append: false,
            temporary: false,
            preset: doc! {},
        }
    }

    /// The next turn of the same conversation.
    pub fn next(&self, agent: &Agent) -> Self {
        Self {
            user_message: uuid(),
            response: uuid(),
            parent: Some(self.response.clone()),
            agent: agent.id.clone(),
            ..self.clone()
        }
    }

    /// The answer to U once more: no new user message, a new response.
    pub fn regenerated(&self, agent: &Agent) -> Self {
        Self {
            response: uuid(),
            agent: agent.id.clone(),
            ..self.clone()
        }
    }

    /// The same with `appendMessageIds`, as later versions of LibreChat save conversations.
    pub fn appending(mut self) -> Self {
        self.append = true;
        self
    }

    /// U is saved.
    pub async fn save_user_message(&self) -> Bson {
        self.step("saveUserMessage", []).await
    }

    /// START: the conversation gets the client's agent; in a new conversation it is made.
    pub async fn start(&self) -> Bson {
        self.step("start", []).await
    }

    /// A plain tool writes the target straight into the document, leaving `updatedAt` alone.
    /// Whether there was a document to write into.
    pub async fn tool_writes(&self, target: &Agent) -> bool {
        let done = self.step("toolWrites", [target.id.as_str().into()]).await;
        done.as_document()
            .and_then(|done| done.get_i32("matched").ok())
            == Some(1)
    }

    /// R is saved with `content`, finished.
    pub async fn save_response(&self, content: &[Bson]) -> Bson {
        self.step("saveResponse", [saved(content, false)]).await
    }

    /// R is saved while it is unfinished: the user stopped the turn, or every client left.
    pub async fn save_unfinished_response(&self, content: &[Bson]) -> Bson {
        self.step("saveResponse", [saved(content, true)]).await
    }

    /// END: the conversation gets the client's agent once more.
    pub async fn end(&self) -> Bson {
        self.step("end", []).await
    }

    /// U is saved again, after END.
    pub async fn touch_user_message(&self) -> Bson {
        self.step("touchUserMessage", []).await
    }

    /// R is saved again, last.
    pub async fn touch_response(&self, content: &[Bson]) -> Bson {
        self.step("touchResponse", [saved(content, false)]).await
    }

    /// The title of a new conversation.
    pub async fn title(&self, title: &str) -> Bson {
        self.step("title", [title.into()]).await
    }

    /// The user renames the conversation.
    pub async fn rename(&self, title: &str) -> Bson {
        self.step("rename", [title.into()]).await
    }

    /// The user deletes the conversation and its messages.
    pub async fn delete(&self) -> Bson {
        self.step("remove", []).await
    }

    /// What follows the tool: R, END and both touches.
    pub async fn finish(&self, content: &[Bson]) {
        self.save_response(content).await;
        self.end().await;
        self.touch_user_message().await;
        self.touch_response(content).await;
    }

    /// A turn in which no tool is called.
    pub async fn run_plain(&self) {
        self.save_user_message().await;
        self.start().await;
        self.finish(&[super::parts::text("An answer")]).await;
    }

    /// A turn in which a plain tool switches to `target`, in the common order.
    pub async fn run_switching(&self, target: &Agent) {
        self.save_user_message().await;
        self.start().await;
        self.tool_writes(target).await;
        let call = super::parts::switch(&target.id, &self.conversation);
        self.finish(&[call, super::parts::text("Switched")]).await;
    }

    /// The conversation's document as it is now.
    pub async fn document(&self, db: &TestDb) -> Option<Document> {
        let key = doc! { "conversationId": &self.conversation, "user": &self.user };
        db.conversations().find_one(key).await.expect("a read")
    }

    /// The agent that the conversation names now.
    pub async fn agent_now(&self, db: &TestDb) -> Option<String> {
        let document = self.document(db).await?;
        document.get_str("agent_id").ok().map(str::to_owned)
    }

    async fn step(&self, step: &str, arguments: impl IntoIterator<Item = Bson>) -> Bson {
        let arguments = [self.plain()].into_iter().chain(arguments);
        self.librechat
            .step(step, arguments.collect::<Vec<_>>())
            .await
    }

    /// The turn as `tests/librechat/turn.mjs` takes it.
    fn plain(&self) -> Bson {
        let mut turn = doc! {
            "conversation": &self.conversation,
            "user": &self.user,
            "userMessage": &self.user_message,
            "response": &self.response,
            "agent": &self.agent,
            "append": self.append,
            "temporary": self.temporary,
            "preset": &self.preset,
        };
        if let Some(parent) = &self.parent {
            turn.insert("parent", parent);
        }
        turn.into()
    }
}

fn saved(content: &[Bson], unfinished: bool) -> Bson {
    doc! { "content": content.to_vec(), "unfinished": unfinished }.into()
}

/// A random UUID: LibreChat refuses conversations with any other id.
pub fn uuid() -> String {
    let id = format!("{:032x}", fastrand::u128(..));
    [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join("-")
}
